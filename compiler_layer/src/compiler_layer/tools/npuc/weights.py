"""The options that say how weights are to be stored."""

from __future__ import annotations

import argparse

from compiler_layer.errors import CompilerUsageError
from compiler_layer.quantize import Format

_GROUP_SIZE = 128


def add_grouping(parser: argparse.ArgumentParser) -> None:
    """Declare the options of integer formats; they have optimum-cli's names."""
    parser.add_argument(
        "--group-size",
        type=int,
        metavar="N",
        help=f"of int4: weights with a scale in common ({_GROUP_SIZE}); -1: all of a channel",
    )
    parser.add_argument(
        "--sym", action="store_true", help="signed numbers without a zero point: i4 or i8"
    )


def wanted_format(arguments: argparse.Namespace) -> Format:
    """Give the integer format that was asked for.

    Raises:
        CompilerUsageError: there is no such group.
    """
    size: int | None = arguments.group_size
    if size is not None and arguments.weight_format != "int4":
        raise CompilerUsageError("--group-size is for --weight-format int4")
    return Format(arguments.weight_format, _GROUP_SIZE if size is None else size, arguments.sym)
