"""Every error a user can meet.

    DovetailError
    |-- ProgramError           a program's text or meaning
    |   |-- ParseError         the text cannot be read (caret under the place)
    |   `-- VerifyError        it reads, but is not a valid program
    |-- GraphError             a graph's structure: a value that nothing makes, a body that does not fit
    |   `-- OperatorError      an operator that is not known, or cannot take these operands or attributes
    |-- ModelError             a model file: damaged, hostile, or one that states nothing
    |   `-- UnsupportedError   a valid model needs an operator, type or opset that is not there; says which and why
    |-- TargetError            a target file, or a machine that lacks what a target needs
    |-- RewriteError           terms, rules and their application
    |   |-- TermError          an ill-typed term (shows both types and where they part)
    |   |-- RuleError          an ill-formed rule, or one that breaks types
    |   `-- PatternError       an ill-formed pattern, or one whose two sides do not compute the same
    |-- MappingError           nothing on the target fits a statement
    |-- PlanError              a plan does not belong to its program or target
    |-- CodegenError           a nest that cannot become code
    |-- CertificateError       a proof or check of generated code failed; nothing was returned
    |-- CallError              a kernel was called with the wrong arguments
    |   `-- IndexRangeError    an indirect index left its tensor while the kernel ran
    |-- SimulationError        a nest breaks a rule of the simulated machine; no numbers are returned
    |-- CacheError             the on-disk cache cannot be trusted (never fatal by itself)
    `-- LimitError             a stated limit would be exceeded

A message says what happened, where, why, and what to try, each on a line of its own.
"""

from __future__ import annotations

from dovetail.base.words import fit_to_print


class DovetailError(Exception):
    """``what`` in one line; ``where``, ``why`` and ``hint`` when they help the reader."""

    def __init__(self, what: str, *, where: str | None = None, why: str | None = None, hint: str | None = None) -> None:
        self.what, self.where, self.why, self.hint = what, where, why, hint
        super().__init__(self.message())

    def message(self) -> str:
        parts = [self.what]
        if self.where:
            parts.append(_indent(self.where))
        if self.why:
            parts.append(_indent(self.why))
        if self.hint:
            parts.append(_indent(f"try: {self.hint}"))
        return fit_to_print("\n".join(parts))


class ProgramError(DovetailError):
    """A program's text or meaning is wrong."""


class ParseError(ProgramError):
    """The text of a program cannot be read."""


class VerifyError(ProgramError):
    """The program reads well but has no meaning."""


class GraphError(DovetailError):
    """A graph has no meaning."""


class OperatorError(GraphError):
    """An operator is not known, or cannot take the operands or attributes it is given."""


class ModelError(DovetailError):
    """A model file cannot be taken."""


class UnsupportedError(ModelError):
    """A valid model needs something that is not there: ``operator`` says what, ``reason`` why."""

    def __init__(self, operator: str, reason: str, *, where: str | None = None, hint: str | None = None) -> None:
        self.operator, self.reason = operator, reason
        super().__init__(f"{operator} cannot be taken: {reason}", where=where, hint=hint)


class TargetError(DovetailError):
    """A target file is wrong, or the machine lacks what it asks for."""


class RewriteError(DovetailError):
    """A term, a rule or its application is wrong, or rewriting was stopped."""


class TermError(RewriteError):
    """A term has no type."""


class RuleError(RewriteError):
    """A rule has no meaning."""


class PatternError(RewriteError):
    """A pattern has no meaning, or maps a computation to another one."""


class MappingError(DovetailError):
    """No instruction of the target fits."""


class PlanError(DovetailError):
    """A plan does not belong to its program or target."""


class CodegenError(DovetailError):
    """A nest cannot become code."""


class CertificateError(DovetailError):
    """A proof or check of generated code failed."""


class CallError(DovetailError):
    """A kernel was called with the wrong arguments."""


class IndexRangeError(CallError):
    """An indirect index left its tensor while the kernel ran."""


class SimulationError(DovetailError):
    """A nest breaks a rule of the simulated machine: names the call, where it happened and the rule."""


class CacheError(DovetailError):
    """The on-disk cache cannot be trusted."""


class LimitError(DovetailError):
    """A stated limit would be exceeded."""


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
