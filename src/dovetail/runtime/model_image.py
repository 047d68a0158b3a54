"""A finished model as plain data: what compilation makes, what files hold, and what runs.

A model is steps over values. A value lies in an input or an output of the caller, in a constant, or in the arena, which
all steps share; compilation has decided where. Constants and object code are numbered and kept beside.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from dovetail.runtime.arrays import Parameter


class Space(Enum):
    """Where a value lies."""

    INPUT = "input"
    OUTPUT = "output"
    CONSTANT = "constant"
    ARENA = "arena"


@dataclass(frozen=True, slots=True)
class Place:
    """``at`` is the number of an input, output or constant, or a byte of the arena."""

    space: Space
    at: int


@dataclass(frozen=True, slots=True)
class Tensor:
    """A value as an array: what a step on the host sees."""

    place: Place
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NativeStep:
    """A kernel with the places of its arguments, in the order of its words.

    ``shared`` and ``private`` are bytes of the arena where its work memory lies, ``stride`` the bytes from one unit's
    private memory to the next one's.
    """

    title: str
    entry: str
    parallel: bool
    arguments: tuple[Place, ...]
    shared: int
    private: int
    stride: int
    status_bytes: int
    """What is behind its status pointer: zero before the first call, and counted on from call to call."""
    names: tuple[str, ...] = ()
    """What its buffers are called by the number that a failed index check reports; empty: it checks none."""
    sizes: tuple[int, ...] = ()
    """Values of its run-time sizes: words behind those of its arguments."""


@dataclass(frozen=True, slots=True)
class HostStep:
    """A function on arrays that no code was generated for; ``node`` says which, in the words of who supplies it."""

    title: str
    node: str
    operands: tuple[Tensor, ...]
    results: tuple[Tensor, ...]


@dataclass(frozen=True, slots=True)
class Copy:
    """An output that no step makes for itself alone: at the end its bytes are copied from ``source``."""

    source: Place
    output: int


@dataclass(frozen=True, slots=True)
class Machine:
    """What the code needs: an architecture, features of the processor, and its word for a waiting loop."""

    triple: str
    features: tuple[str, ...]
    relax: str


@dataclass(frozen=True, slots=True)
class Image:
    """All of a model but its constants and its object code."""

    machine: Machine
    threads: int
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    steps: tuple[NativeStep | HostStep, ...]
    copies: tuple[Copy, ...]
    arena_bytes: int

    def natives(self) -> Iterator[NativeStep]:
        return (step for step in self.steps if isinstance(step, NativeStep))

    @property
    def units(self) -> int:
        """How many threads a run takes."""
        return self.threads if any(step.parallel for step in self.natives()) else 1
