"""``npuc compile``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from xdsl.dialects.builtin import StringAttr

from compiler_layer.compile import compile_model
from compiler_layer.errors import CompilerUsageError
from compiler_layer.model import Model
from compiler_layer.passes.adjust_precision import PRECISIONS
from compiler_layer.pipeline import AFTER, Options, passes, remaining, run_passes
from compiler_layer.tools.command import Commands, declare
from compiler_layer.tools.npuc.models import add_model, add_shapes, matching_shapes, read_model
from compiler_layer.writers.files import write_whole
from driver_layer.abi.platforms import DEFAULT_PLATFORM, PLATFORMS

_EXAMPLES = """\
A model is an openvino_model.xml, a Hugging Face folder, or IR as text (.mlir): what --stop-after
printed is compiled on from there, to the same blob.

An NPU needs static shapes. Names may be patterns; variables go by their id:

  npuc compile models/demo -o prefill.blob \\
      --shape input_ids=1x128 --shape attention_mask=1x128 --shape position_ids=1x128 \\
      --shape beam_idx=1 --shape 'past_key_values.*=1x4x0x32'

  npuc compile models/demo --stop-after lift-state ...     the graph as a pure function
  npuc compile models/demo --print-ir-after tile ...       what each op is cut into
  npuc passes                                              the passes in order
  npuc explain prefill.blob                                what each op became, and its time
"""


def add_to(commands: Commands) -> None:
    """Declare the command."""
    parser = declare(
        commands, "compile", _run, "compile a model to a blob, or as far as a pass", _EXAMPLES
    )
    add_model(parser)
    parser.add_argument("-o", "--output", type=Path, help="the blob; MODEL.blob if not given")
    add_shapes(parser)
    parser.add_argument("--precision", choices=PRECISIONS, default="f16", help="of activations")
    parser.add_argument(
        "--platform",
        default=DEFAULT_PLATFORM,
        help=f"{', '.join(PLATFORMS)}, or a file (.toml) of your own",
    )
    parser.add_argument("--tiles", type=int, default=0, help="NCE tiles to use; 0: up to four")
    parser.add_argument(
        "--weightless", action="store_true", help="leave the weights in the model's files"
    )
    parser.add_argument(
        "--integer-activations",
        action="store_true",
        help="8 bits and a scale per token where weights have 8 bits (W8A8)",
    )
    parser.add_argument(
        "--no-fold", action="store_true", help="compile each layer, though layers are equal"
    )
    parser.add_argument("--print-ir-after", action="append", default=[], metavar="PASS")
    parser.add_argument("--print-ir-after-all", action="store_true")
    parser.add_argument("--stop-after", metavar="PASS", help="print the IR and compile no further")


def _run(arguments: argparse.Namespace) -> int:
    began = time.perf_counter()
    _check_passes([*arguments.print_ir_after, *filter(None, [arguments.stop_after])])
    path: Path = arguments.model
    model = read_model(path)
    options = Options(
        arguments.precision,
        arguments.platform,
        arguments.tiles,
        integer_activations=arguments.integer_activations,
        weightless=arguments.weightless,
        shapes=matching_shapes(model, arguments.shape),
        verify_each=True,
        fold=not arguments.no_fold,
    )
    printer = _Printer(arguments)
    if arguments.stop_after:
        wanted = remaining(model, passes(options))
        names = [each.name for each in wanted]
        if arguments.stop_after not in names:
            raise CompilerUsageError(f"{path} has been through {arguments.stop_after!r} already")
        last = names.index(arguments.stop_after)
        run_passes(model, wanted[: last + 1], options, printer)
        return 0
    blob = compile_model(model, options, path.stem, printer)
    output: Path = arguments.output or Path(path.stem + ".blob")
    write_whole(output, blob)
    seconds = time.perf_counter() - began
    print(f"{output}: {len(blob):,} bytes in {seconds:.2f} s", file=sys.stderr)
    return 0


class _Printer:
    """Prints the IR after the passes that were asked for."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._all = arguments.print_ir_after_all
        self._wanted = {*arguments.print_ir_after, arguments.stop_after}

    def __call__(self, name: str, model: Model) -> None:
        if self._all or name in self._wanted:
            model.module.attributes[AFTER] = StringAttr(name)
            print(f"// IR after {name}\n{model.text()}")


def _check_passes(names: Sequence[str]) -> None:
    known = [each.name for each in passes(Options())]
    for name in names:
        if name not in known:
            raise CompilerUsageError(f"no pass {name!r}; there are {', '.join(known)}")
