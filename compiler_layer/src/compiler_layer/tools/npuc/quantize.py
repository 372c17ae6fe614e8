"""``npuc quantize``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from compiler_layer.errors import CompilerUsageError
from compiler_layer.model import Model
from compiler_layer.quantize import (
    Format,
    LayerReport,
    TensorFile,
    format_activations,
    format_table,
    measure_weights,
    parameters,
    quantize_weights,
    store_floats,
)
from compiler_layer.tools.command import Commands, declare
from compiler_layer.tools.npuc.activations import (
    add_quant_mode,
    check_quant_mode,
    quantize_statically,
)
from compiler_layer.tools.npuc.models import add_model, read_model
from compiler_layer.tools.npuc.progress import progress
from compiler_layer.tools.npuc.weights import add_grouping, wanted_format
from compiler_layer.writers.files import scratch_folder
from compiler_layer.writers.openvino_ir import weight_bytes, write_ir

_EXAMPLES = """\
  npuc quantize llama --report                                      8 bits per channel
  npuc quantize llama --report --weight-format int4 --group-size 64 --sym
  npuc quantize openvino_model.xml --weight-format int4 -o small/openvino_model.xml
  npuc quantize llama --report --quant-mode int8 --dataset tokens.txt      activations as well

Errors in the table are relative: the largest error to the largest weight, the mean error to the
mean weight, and (rel.) the Frobenius norms. SNR is the last one in dB; 6 dB are one bit.
"""


def add_to(commands: Commands) -> None:
    """Declare the command."""
    parser = declare(
        commands, "quantize", _run, "say what fewer bits do to each weight of a model", _EXAMPLES
    )
    add_model(parser)
    parser.add_argument("--weight-format", choices=("int8", "int4"), default="int8")
    add_grouping(parser)
    add_quant_mode(parser)
    parser.add_argument("--report", action="store_true", help="print the table of errors")
    parser.add_argument("-o", "--output", type=Path, metavar="XML", help="write the IR as well")


def _run(arguments: argparse.Namespace) -> int:
    output: Path | None = arguments.output
    wanted = wanted_format(arguments)
    if output is None and not arguments.report:
        raise CompilerUsageError("quantize needs --report, -o, or both")
    if output is not None and output.suffix != ".xml":
        raise CompilerUsageError(f"{output}: the name of an IR ends in .xml")
    check_quant_mode(arguments)
    model = read_model(arguments.model)
    activations: list[LayerReport] = []
    if arguments.quant_mode is not None:
        activations = quantize_statically(model, arguments.dataset, arguments.report)
    reports = _measure(model, wanted) if output is None else _write(model, wanted, output)
    if arguments.report:
        print(format_table(reports))
    if activations:
        print(format_activations(activations))
    return 0


def _measure(model: Model, wanted: Format) -> list[LayerReport]:
    with progress("quantising", parameters(model), "") as advance:
        return measure_weights(model, wanted, advance)


def _write(model: Model, wanted: Format, output: Path) -> list[LayerReport]:
    with scratch_folder(output) as scratch:
        reports = quantize_into(model, wanted, scratch)
        with progress("writing", weight_bytes(model), "B") as advance:
            write_ir(model, output, advance)
    print(f"{output}: {len(reports)} weights quantised", file=sys.stderr)
    return reports


def quantize_into(model: Model, wanted: Format, scratch: Path) -> list[LayerReport]:
    """Quantise a model in place; its new weights lie in a folder until it is written.

    Raises:
        CompilerUsageError: there is nothing to quantise, or the folder cannot be written to.
        BadModel: a weight is not finite or too large, or cannot be read.
    """
    with progress("quantising", parameters(model), "") as advance:
        reports = quantize_weights(model, wanted, TensorFile(scratch / "weights"), advance)
    # The rest is small, and stays exact; OpenVINO's CPU has no use for bf16 constants.
    store_floats(model, {"bf16": "f32"})
    return reports
