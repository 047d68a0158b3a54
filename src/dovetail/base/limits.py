"""Bounds on untrusted or runaway input, in one value that is handed down."""

from __future__ import annotations

from dataclasses import dataclass

MAX_EXTENT = 2**31 - 1
MAX_BYTES = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a program may be and how long a search may take."""

    extent: int = MAX_EXTENT
    """Largest extent of one loop or dimension."""
    tensor_bytes: int = MAX_BYTES
    """Largest tensor."""
    statements: int = 4096
    text_bytes: int = 1 << 24
    mapping_depth: int = 3
    """How many transformations a fit may use besides free reordering."""
    mapping_count: int = 4096
    """How many fits one search may return."""
    mapping_seconds: float = 20.0


@dataclass(frozen=True, slots=True)
class RewriteLimits:
    """How long rules may go on."""

    steps: int = 1000
    """How many rules may fire."""
    nodes: int = 20_000
    """How large a term may grow."""
    seconds: float = 10.0
    choices: int = 64
    """How many values of a size that a rule may choose are tried."""


@dataclass(frozen=True, slots=True)
class ExploreLimits:
    """How far all that rules make of a term is followed."""

    nodes: int = 4000
    """How many operations over classes of equal terms there may be."""
    iterations: int = 8
    seconds: float = 8.0
    choices: int = 3
    """How many values of a size that a rule may choose are tried."""
    variants: int = 3
    """How many other terms of each operand rules see, besides the smallest."""
    estimates: int = 64
    """How many terms are given to the estimate."""


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """How large a model from outside may be. What is larger is refused by name, before memory is taken for it."""

    file_bytes: int = 2**31 - 1
    """The file itself; protobuf has no larger ones."""
    external_bytes: int = 1 << 36
    """Data beside the file, of all tensors together."""
    tensor_bytes: int = 1 << 34
    """One tensor, in memory."""
    constant_bytes: int = 1 << 36
    """All tensors of the file together, in memory."""
    folded_bytes: int = 1 << 28
    """One value that is made while a model is read, from others that are known then."""
    memory_bytes: int = 1 << 36
    """Constants and intermediate values together, while the model runs."""
    extent: int = MAX_EXTENT
    """Largest extent of one dimension."""
    rank: int = 32
    """How many dimensions a tensor may have."""
    messages: int = 2_000_000
    """How many parts the file may have in all: nodes, attributes, tensors, names, types."""
    nodes: int = 200_000
    """Nodes of all graphs and functions together."""
    node_values: int = 16_384
    """Inputs, or outputs, of one node."""
    attributes: int = 256
    """Attributes of one node."""
    list_length: int = 1 << 22
    """Numbers or words in the lists of all attributes together."""
    text_bytes: int = 1 << 26
    """Words in attributes and tensors together."""
    depth: int = 16
    """How deep graphs lie within graphs, and types within types."""
    name_bytes: int = 4096
    functions: int = 10_000
    inlined_nodes: int = 100_000
    """Nodes once every call of a function is replaced by its body."""


DEFAULT_LIMITS = Limits()
DEFAULT_EXPLORE_LIMITS = ExploreLimits()
DEFAULT_REWRITE_LIMITS = RewriteLimits()
DEFAULT_MODEL_LIMITS = ModelLimits()
