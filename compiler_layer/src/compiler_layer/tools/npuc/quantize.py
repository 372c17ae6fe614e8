"""``npuc quantize``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

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
from compiler_layer.tools.npuc.models import model_argument, read_model
from compiler_layer.tools.npuc.options import (
    Quantisation,
    quantisation_options,
    quantize_statically,
)
from compiler_layer.writers.files import scratch_folder
from compiler_layer.writers.openvino_ir import weight_bytes, write_ir
from driver_layer.support.command import PATH, Command
from driver_layer.support.progress import counted

_EXAMPLES = """\
  npuc quantize llama --report                                      8 bits per channel
  npuc quantize llama --report --weight-format int4 --group-size 64 --sym
  npuc quantize openvino_model.xml --weight-format int4 -o small/openvino_model.xml
  npuc quantize llama --report --quant-mode int8 --dataset tokens.txt      activations as well

Errors in the table are relative: the largest error to the largest weight, the mean error to the
mean weight, and (rel.) the ratio of Frobenius norms. SNR is this ratio in dB; 6 dB are one bit.
"""


@click.command("quantize", cls=Command, epilog=_EXAMPLES)
@model_argument
@quantisation_options("int8", "int4")
@click.option("--report", is_flag=True, help="print the table of errors")
@click.option("-o", "--output", type=PATH, metavar="XML", help="write the IR as well")
def quantize_command(model: Path, report: bool, output: Path | None, **quantisation: Any) -> None:
    """Measure the errors that quantisation causes in each weight of a model."""
    wanted = Quantisation(**quantisation)
    form = wanted.format
    if output is None and not report:
        raise CompilerUsageError("quantize needs --report, -o, or both")
    if output is not None and output.suffix != ".xml":
        raise CompilerUsageError(f"{output}: the name of an IR must end in .xml")
    wanted.check_activations()
    read = read_model(model)
    activations: list[LayerReport] = []
    if wanted.quant_mode is not None:
        activations = quantize_statically(read, wanted.dataset, report)
    if output is None:
        with counted("quantising", parameters(read), "weights") as advance:
            reports = measure_weights(read, form, advance)
    else:
        reports = _write(read, form, output)
    if report:
        print(format_table(reports))
    if activations:
        print(format_activations(activations))


def _write(model: Model, wanted: Format, output: Path) -> list[LayerReport]:
    with scratch_folder(output) as scratch:
        reports = quantize_into(model, wanted, scratch)
        with counted("writing", weight_bytes(model), "B") as advance:
            write_ir(model, output, advance)
    print(f"{output}: {len(reports)} weights quantised", file=sys.stderr)
    return reports


def quantize_into(model: Model, wanted: Format, scratch: Path) -> list[LayerReport]:
    """Quantise a model in place; its new weights are in the ``scratch`` folder until it is written.

    Raises:
        CompilerUsageError: no weight can be quantised, or the folder cannot be written.
        BadModel: a weight is not finite or too large, or cannot be read.
    """
    with counted("quantising", parameters(model), "weights") as advance:
        reports = quantize_weights(model, wanted, TensorFile(scratch / "weights"), advance)
    # The rest is small, and stays exact; OpenVINO's CPU does not use bf16 constants.
    store_floats(model, {"bf16": "f32"})
    return reports
