"""The functional language: what is computed, as maps and reductions over arrays whose sizes are in their types."""

from dovetail.ir.functional import show as show
