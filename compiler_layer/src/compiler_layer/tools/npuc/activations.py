"""The options that say whether activations are quantised, and on what their ranges are found."""

from __future__ import annotations

import argparse
from pathlib import Path

from compiler_layer.errors import CompilerUsageError
from compiler_layer.model import Model
from compiler_layer.quantize import (
    LayerReport,
    built_in_sequences,
    calibrate,
    find_activations,
    measure_activations,
    quantize_activations,
    read_sequences,
)
from compiler_layer.quantize.sequences import BUILT_IN_COUNT, BUILT_IN_LENGTH
from compiler_layer.tools.npuc.progress import progress


def add_quant_mode(parser: argparse.ArgumentParser) -> None:
    """Declare the options of static quantisation; they have optimum-cli's names."""
    parser.add_argument(
        "--quant-mode",
        choices=("int8",),
        help="quantise activations as well (W8A8), of --weight-format int8: what products take is "
        "rounded to 256 steps of a range that is found beforehand, by running the model in numpy",
    )
    parser.add_argument(
        "--dataset",
        type=Path,
        metavar="FILE",
        help="of --quant-mode: text with the token ids of a sequence in each line; without it the "
        f"ranges are found on {BUILT_IN_COUNT} x {BUILT_IN_LENGTH} random tokens, which says "
        "little about real text",
    )


def check_quant_mode(arguments: argparse.Namespace) -> None:
    """See that the options fit together.

    Raises:
        CompilerUsageError: they do not.
    """
    if arguments.quant_mode is None and arguments.dataset is not None:
        raise CompilerUsageError("--dataset is for --quant-mode int8")
    if arguments.quant_mode is not None and arguments.weight_format != "int8":
        raise CompilerUsageError("--quant-mode int8 is for --weight-format int8")


def quantize_statically(
    model: Model, dataset: Path | None, wants_report: bool
) -> list[LayerReport]:
    """Round the activations of a model in place, which has float weights yet.

    Args:
        model: to run, and to change.
        dataset: sequences of tokens; None takes the built-in ones.
        wants_report: run it once more, to say how far off the activations are.

    Returns:
        A report for each activation if it is wanted.

    Raises:
        CompilerUsageError: the file is not to be used, or nothing is to be quantised.
        BadModel: an activation is not finite, or too large.
    """
    tokens = built_in_sequences(model) if dataset is None else read_sequences(dataset, model)
    found = find_activations(model)
    if not found:
        raise CompilerUsageError(
            "no activations to quantise: the model has no products with float weights [N, K]"
        )
    count = sum(each.size for each in tokens)
    with progress("calibrating", count * (1 + wants_report), " tokens") as advance:
        ranges = calibrate(model, found, tokens, advance)
        known = (model, found, ranges, tokens)
        reports = measure_activations(*known, advance) if wants_report else []
    quantize_activations(model, found, ranges)
    return reports
