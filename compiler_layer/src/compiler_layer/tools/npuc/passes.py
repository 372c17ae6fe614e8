"""``npuc print``, ``npuc run-pass`` and ``npuc passes``: graphs as text, and passes on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import click
from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.exceptions import ArgSpecParseError

from compiler_layer.errors import CompilerUsageError
from compiler_layer.pipeline import Options, available_passes, passes, run_passes
from compiler_layer.tools.npuc.models import model_argument, read_model, shape_option, specialize
from driver_layer.support.command import Command

_PRINT_EXAMPLES = """\
  npuc print models/demo | less
  npuc print openvino_model.xml > model.mlir     every command accepts the text as a model

With --shape the graph is made static first; then every input and variable needs a shape.
The text does not contain the weights, but refers to their files.
"""

_RUN_EXAMPLES = """\
  npuc run-pass fuse-rms models/demo | less
  npuc run-pass fold-constants,simplify,fuse-rms,fuse-rope models/demo
  npuc run-pass 'adjust-precision{precision=bf16}' model.mlir

The passes run in the order given, and the graph is verified after each. `npuc passes` lists them.
With --shape the graph is made static first; then every input and variable needs a shape.
"""


@click.command("print", cls=Command, epilog=_PRINT_EXAMPLES)
@model_argument
@shape_option
def print_command(model: Path, shape: Sequence[str]) -> None:
    """Print a model's graph as text."""
    read = read_model(model)
    specialize(read, shape)
    print(read.text(), end="")


@click.command("run-pass", cls=Command, epilog=_RUN_EXAMPLES)
@click.argument("pipeline", metavar="PASS[,PASS…]")
@model_argument
@shape_option
def run_pass_command(pipeline: str, model: Path, shape: Sequence[str]) -> None:
    """Run passes on a model and print the graph."""
    wanted = _parse(pipeline)
    read = read_model(model)
    specialize(read, shape)
    run_passes(read, wanted, Options(verify_each=True))
    print(read.text(), end="")


@click.command("passes", cls=Command)
def passes_command() -> None:
    """List the passes in order, with their descriptions."""
    for each in passes(Options()):
        print(f"{each.name:<20} {(type(each).__doc__ or '').splitlines()[0]}")


def _parse(text: str) -> Sequence[ModulePass]:
    """Parse a pipeline of passes.

    Raises:
        CompilerUsageError: a pass or option is unknown, or the text is not a pipeline.
    """
    known = available_passes()
    makers: dict[str, Callable[[], type[ModulePass]]] = {
        name: (lambda made=made: made) for name, made in known.items()
    }
    try:
        return PassPipeline.parse_spec(makers, text).passes
    except (ValueError, ArgSpecParseError) as error:
        reason = " ".join(str(error).split())
        raise CompilerUsageError(
            f"{text!r} is not a list of passes: {reason}; the passes are {', '.join(known)}"
        ) from None
