"""``npuc compile``."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import click
from xdsl.dialects.builtin import StringAttr

from compiler_layer.compile import compile_model
from compiler_layer.errors import CompilerUsageError
from compiler_layer.model import Model
from compiler_layer.passes.adjust_precision import PRECISIONS
from compiler_layer.pipeline import AFTER, Options, passes, remaining, run_passes
from compiler_layer.tools.npuc.models import (
    matching_shapes,
    model_argument,
    read_model,
    shape_option,
)
from compiler_layer.writers.files import write_whole
from driver_layer.abi.platforms import DEFAULT_PLATFORM, PLATFORMS
from driver_layer.support.command import PATH, Command
from driver_layer.support.progress import reported_to

_EXAMPLES = """\
A model is an openvino_model.xml, a Hugging Face folder, or IR as text (.mlir). Text that
--stop-after printed is compiled from that pass on, to the same blob.

An NPU needs static shapes. Names may be patterns; variables are named by their id:

  npuc compile models/demo -o prefill.blob \\
      --shape input_ids=1x128 --shape attention_mask=1x128 --shape position_ids=1x128 \\
      --shape beam_idx=1 --shape 'past_key_values.*=1x4x0x32'

  npuc compile models/demo --stop-after lift-state ...     the graph as a pure function
  npuc compile models/demo --print-ir-after tile ...       the blocks of each op
  npuc passes                                              the passes in order
  npuc explain prefill.blob                                the tasks and the time of each op
"""


@click.command("compile", cls=Command, epilog=_EXAMPLES)
@model_argument
@click.option("-o", "--output", type=PATH, help="file of the blob; default: MODEL.blob")
@shape_option
@click.option("--precision", type=click.Choice(PRECISIONS), default="f16", help="activation type")
@click.option(
    "--platform",
    default=DEFAULT_PLATFORM,
    help=f"{', '.join(PLATFORMS)}, or the path of a platform file (.toml)",
)
@click.option("--tiles", type=int, default=0, help="number of NCE tiles; 0: up to four")
@click.option("--weightless", is_flag=True, help="keep the weights in the model's files")
@click.option(
    "--integer-activations",
    is_flag=True,
    help="8-bit activations with a scale per token; the weights must have 8 bits (W8A8)",
)
@click.option("--no-fold", is_flag=True, help="compile each layer separately, even equal ones")
@click.option(
    "--print-ir-after",
    multiple=True,
    metavar="PASS",
    help="print the IR after a pass, and continue; may be repeated",
)
@click.option("--print-ir-after-all", is_flag=True, help="print the IR after every pass")
@click.option("--stop-after", metavar="PASS", help="print the IR after a pass, and stop")
def compile_command(
    model: Path,
    output: Path | None,
    shape: Sequence[str],
    precision: str,
    platform: str,
    tiles: int,
    weightless: bool,
    integer_activations: bool,
    no_fold: bool,
    print_ir_after: Sequence[str],
    print_ir_after_all: bool,
    stop_after: str | None,
) -> None:
    """Compile a model to a blob, or up to a pass."""
    began = time.perf_counter()
    printed = [*print_ir_after, *filter(None, [stop_after])]
    _check_passes(printed)
    read = read_model(model)
    options = Options(
        precision,
        platform,
        tiles,
        integer_activations=integer_activations,
        weightless=weightless,
        shapes=matching_shapes(read, shape),
        verify_each=True,
        fold=not no_fold,
    )
    printer = _Printer(None if print_ir_after_all else {*printed})
    if printed or print_ir_after_all:
        # Text and progress bars would share the terminal's lines.
        click.get_current_context().with_resource(reported_to(None))
    if stop_after:
        wanted = remaining(read, passes(options))
        names = [each.name for each in wanted]
        if stop_after not in names:
            raise CompilerUsageError(f"{model}: pass {stop_after!r} has already run")
        run_passes(read, wanted[: names.index(stop_after) + 1], options, printer)
        return
    blob = compile_model(read, options, model.stem, printer)
    output = output or Path(model.stem + ".blob")
    write_whole(output, blob)
    seconds = time.perf_counter() - began
    print(f"{output}: {len(blob):,} bytes in {seconds:.2f} s", file=sys.stderr)


class _Printer:
    """Printer of the IR after passes; after all passes if ``wanted`` is None."""

    def __init__(self, wanted: set[str] | None) -> None:
        self._wanted = wanted

    def __call__(self, name: str, model: Model) -> None:
        if self._wanted is None or name in self._wanted:
            model.module.attributes[AFTER] = StringAttr(name)
            print(f"// IR after {name}\n{model.text()}")


def _check_passes(names: Iterable[str]) -> None:
    known = [each.name for each in passes(Options())]
    for name in names:
        if name not in known:
            raise CompilerUsageError(f"no pass {name!r}; the passes are {', '.join(known)}")
