"""``dovetail``: the verbs, and what all of them have in common: errors, exit codes, the version.

Exit codes: 0 done; 1 what was checked is wrong; 2 the command, a file or a program is wrong.
"""

from __future__ import annotations

from typing import Annotated

import typer
from typer.core import TyperGroup

from dovetail import __version__
from dovetail.base.errors import DovetailError
from dovetail.cli.bench import bench
from dovetail.cli.compile import compile_verb
from dovetail.cli.doctor import doctor
from dovetail.cli.explain import explain_verb
from dovetail.cli.map import map_verb
from dovetail.cli.rules import rules_app
from dovetail.cli.run import run
from dovetail.cli.screen import say, show_error
from dovetail.cli.simulate import simulate_verb
from dovetail.cli.targets import targets_app
from dovetail.cli.verify import verify

USER_ERROR = 2


class Verbs(TyperGroup):
    """Turns the errors a user can meet into a message and an exit code."""

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]  # typer's own context is narrower
        try:
            return super().invoke(ctx)
        except DovetailError as error:
            show_error(error)
            raise typer.Exit(USER_ERROR) from None


app = typer.Typer(
    name="dovetail",
    cls=Verbs,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def main() -> None:
    """The entry point of the ``dovetail`` command."""
    app(prog_name="dovetail")


def _version(wanted: bool) -> None:
    if wanted:
        say(f"dovetail {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Fit a computation to a machine: find every mapping, prove the one that is used, compile it, run it.

    \b
    A program is declarations, loops and arithmetic:
      in a: f32[128,256]  in b: f32[256,64]  out c: f32[128,64]
      for i<128, j<64, k<256: c[i,j] += a[i,k] * b[k,j]

    \b
    Put it into matmul.dt, then:
      dovetail map matmul.dt        which instructions of this machine fit, and why others do not
      dovetail run matmul.dt        compile it, run it, time it
      dovetail verify matmul.dt     compare every element with the reference

    \b
    Or it is a term, and rules lead to the machine:
      def dot(x: f32[64], y: f32[64]) -> z = reduce(add, 0, map(mul, zip(x, y)))
      dovetail explain dot.dt --target my-chip.toml --derivation     the chain of rules
      dovetail rules                                                 which there are

    \b
    The algorithm of a convolution is chosen by what each would cost:
      dovetail run conv.dt --relaxed                  Winograd's too, which rounds otherwise
      dovetail explain conv.dt --relaxed --derivation how it follows from the program

    \b
    A machine is a file too. Those that exist only as a file are simulated:
      dovetail targets                                     which there are
      dovetail targets new my-chip                         begin one of your own
      dovetail simulate matmul.dt --target my-chip.toml    count the cycles of a program on it
    """


app.command("map")(map_verb)
app.command("compile")(compile_verb)
app.command("explain")(explain_verb)
app.command("run")(run)
app.command("bench")(bench)
app.command("verify")(verify)
app.command("simulate")(simulate_verb)
app.add_typer(targets_app, name="targets")
app.add_typer(rules_app, name="rules")
app.command("doctor")(doctor)
