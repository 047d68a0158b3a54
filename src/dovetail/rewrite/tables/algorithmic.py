"""The algorithmic level: every rule about terms, by what it is about."""

from __future__ import annotations

from dovetail.rewrite.rule import Rule
from dovetail.rewrite.tables.convolution import CONVOLUTION
from dovetail.rewrite.tables.maps import MAPS
from dovetail.rewrite.tables.moves import MOVES
from dovetail.rewrite.tables.reductions import REDUCTIONS
from dovetail.rewrite.tables.storage import STORAGE

ALGORITHMIC: tuple[Rule, ...] = (*MAPS, *MOVES, *REDUCTIONS, *STORAGE, *CONVOLUTION)
