"""Quantisation options that commands share, with optimum-cli's names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from compiler_layer.errors import CompilerUsageError
from compiler_layer.model import Model
from compiler_layer.quantize import (
    Format,
    LayerReport,
    built_in_sequences,
    calibrate,
    find_activations,
    measure_activations,
    quantize_activations,
    read_sequences,
)
from compiler_layer.quantize.schemes import GROUP_SIZES
from compiler_layer.quantize.sequences import BUILT_IN_COUNT, BUILT_IN_LENGTH
from driver_layer.support.command import PATH
from driver_layer.support.progress import counted


@dataclass(frozen=True, slots=True)
class Quantisation:
    """Storage formats of weights and activations.

    Attributes:
        weight_format: name of the format; ``npuc export`` also has float formats.
        group_size: number of int4 weights that share a scale; None: see ``Format``.
        sym: signed numbers without a zero point.
        quant_mode: int8 quantises activations, too; None does not.
        dataset: token sequences for calibrating the ranges of activations.
    """

    weight_format: str
    group_size: int | None
    sym: bool
    quant_mode: str | None
    dataset: Path | None

    @property
    def format(self) -> Format:
        """The integer format of weights.

        Raises:
            CompilerUsageError: the group size does not fit the format.
        """
        if self.group_size is not None and self.weight_format != "int4":
            raise CompilerUsageError("--group-size needs --weight-format int4")
        return Format(self.weight_format, self.group_size, self.sym)

    def check_activations(self) -> None:
        """Check that the options of activations are consistent.

        Raises:
            CompilerUsageError: the options contradict each other.
        """
        if self.quant_mode is None and self.dataset is not None:
            raise CompilerUsageError("--dataset needs --quant-mode int8")
        if self.quant_mode is not None and self.weight_format != "int8":
            raise CompilerUsageError("--quant-mode int8 needs --weight-format int8")


def quantisation_options(*formats: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare the fields of ``Quantisation`` as options; the first format is the default."""
    options = (
        click.option("--weight-format", type=click.Choice(formats), default=formats[0]),
        click.option(
            "--group-size",
            type=int,
            metavar="N",
            help="int4: number of weights that share a scale; -1: per channel; default: the largest"
            f" of {', '.join(map(str, GROUP_SIZES))} that divides a weight's width. Weights whose "
            "width no size divides keep 8 bits",
        ),
        click.option("--sym", is_flag=True, help="signed weights without a zero point: i4 or i8"),
        click.option(
            "--quant-mode",
            type=click.Choice(["int8"]),
            help="quantise activations as well (W8A8); needs --weight-format int8. Operands of "
            "matmuls are rounded to 256 steps of a fixed range, which is calibrated by running "
            "the model in numpy",
        ),
        click.option(
            "--dataset",
            type=PATH,
            metavar="FILE",
            help="calibration data of --quant-mode: a text file with one sequence of token ids per "
            f"line; default: {BUILT_IN_COUNT} x {BUILT_IN_LENGTH} random tokens, whose ranges may "
            "differ from those of real text",
        ),
    )

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return declare


def quantize_statically(
    model: Model, dataset: Path | None, wants_report: bool
) -> list[LayerReport]:
    """Quantise the activations of a model in place, whose weights are still floats.

    Args:
        model: model to run and to change.
        dataset: token sequences; None uses the built-in ones.
        wants_report: run the model again to measure the errors of activations.

    Returns:
        A report for each activation if ``wants_report``.

    Raises:
        CompilerUsageError: the file cannot be used, or no activation can be quantised.
        BadModel: an activation is not finite, or too large.
    """
    tokens = built_in_sequences(model) if dataset is None else read_sequences(dataset, model)
    found = find_activations(model)
    if not found:
        raise CompilerUsageError(
            "no activations to quantise: the model has no matmuls with float weights [N, K]"
        )
    count = len(found) * len(tokens) * (1 + wants_report)
    with counted("calibrating", count, "activations") as advance:
        ranges = calibrate(model, found, tokens, advance)
        known = (model, found, ranges, tokens)
        reports = measure_activations(*known, advance) if wants_report else []
    quantize_activations(model, found, ranges)
    return reports
