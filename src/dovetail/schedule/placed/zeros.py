"""Zeros for machines that copy them: one element of 0 in main memory, set by the host unit before anything else."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

from dovetail.base.dtypes import DType
from dovetail.ir.expr import Literal
from dovetail.ir.index import ZERO, Access, constant, variable
from dovetail.ir.nest import Call, Place
from dovetail.ir.program import Combine, Loop, Program, Role, Statement, Tensor
from dovetail.targets.model import Instruction, Operand, Target


def zero_target(target: Target) -> Target:
    """``target`` with an instruction of its host unit for each dtype, ``host.zero.<dtype>``, that sets one element.

    A store of the host, a cycle. The target itself where there is no host."""
    host = target.host
    if host is None:
        return target
    main = target.main.name
    dtypes = {o.dtype for i in target.instructions if i.is_copy for o in i.operands if o.memory == main}
    made = [_zero(dtype, main, host.name, target) for dtype in sorted(dtypes, key=str)]
    text = "\n".join([target.digest, *(i.name for i in made)])
    by_name = {**target.by_name, **{i.name: i for i in made}}
    return replace(target, by_name=by_name, digest=sha256(text.encode()).hexdigest())


def zero_call(buffer: str, dtype: DType) -> Call:
    """Sets the element of a buffer of one."""
    return Call(f"host.zero.{dtype}", (Place(buffer, (ZERO,)),))


def _zero(dtype: DType, main: str, unit: str, target: Target) -> Instruction:
    tensor = Tensor(Role.OUT, "y", dtype, (constant(1),))
    out = Access("y", (variable("i"),))
    number = 0.0 if dtype.is_float else 0
    statement = Statement((Loop("i", constant(1)),), out, Combine.SET, Literal(number))
    source = f"{target.path or target.name}: zeros from the host"
    name = f"host.zero.{dtype}"
    return Instruction(name, Program((tensor,), (statement,)), (Operand("y", dtype, main),), unit=unit, source=source)
