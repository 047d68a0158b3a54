"""``@pattern``: a Python function over operators as a pattern.

@pattern(replacement=lambda x: op.silu(x))
def swish(x):
    return x * op.sigmoid(x)
"""

from __future__ import annotations

from collections.abc import Callable

from dovetail.rewrite.patterns.pattern import Pattern


def pattern(
    *,
    replacement: Callable[..., object] | str = "",
    name: str = "",
    when: tuple[str, ...] = (),
    types: tuple[str, ...] = (),
    program: str = "",
    call: str = "",
    error: str = "",
) -> Callable[[Callable[..., object]], Pattern]:
    """What is written above a function of operators: it becomes a ``Pattern``, to be handed to ``load`` or ``compile``.

    ``replacement`` is another function of values with the same names, or text; ``program`` is a program over them, and
    ``call`` an instruction of the target file, called in ``replacement`` as ``op.program(x)`` and ``op.call(x)``.
    ``when`` lists conditions, ``error`` states roundings that the two may be apart, as in "256 * eps".
    """

    def made(function: Callable[..., object]) -> Pattern:
        return Pattern.traced(
            function, replacement, name=name, when=when, types=types, program=program, call=call, error=error
        )

    return made
