"""``npuc run-pass``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.exceptions import ArgSpecParseError

from compiler_layer.errors import CompilerUsageError
from compiler_layer.pipeline import Options, available_passes, run_passes
from compiler_layer.tools.command import Commands, declare
from compiler_layer.tools.npuc.models import add_model, add_shapes, read_model, specialize

_EXAMPLES = """\
  npuc run-pass fuse-rms models/demo | less
  npuc run-pass fold-constants,simplify,fuse-rms,fuse-rope models/demo
  npuc run-pass 'adjust-precision{precision=bf16}' model.mlir

The passes run in the order given, and the graph is verified after each. `npuc passes` lists them.
With --shape the graph is made static first; then every input and variable needs a shape.
"""


def add_to(commands: Commands) -> None:
    """Declare the command."""
    parser = declare(
        commands, "run-pass", _run, "run passes on a model and print the graph", _EXAMPLES
    )
    parser.add_argument("passes", metavar="PASS[,PASS…]", help="may have options: tile{tiles=2}")
    add_model(parser)
    add_shapes(parser)


def _run(arguments: argparse.Namespace) -> int:
    wanted = _parse(arguments.passes)
    model = read_model(arguments.model)
    specialize(model, arguments.shape)
    run_passes(model, wanted, Options(verify_each=True))
    sys.stdout.write(model.text())
    return 0


def _parse(text: str) -> Sequence[ModulePass]:
    """Make passes of a pipeline as text.

    Raises:
        CompilerUsageError: there is no such pass or option, or the text is no pipeline.
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
            f"{text!r} names no passes: {reason}; there are {', '.join(known)}"
        ) from None
