"""``npuc passes``."""

from __future__ import annotations

import argparse

from compiler_layer.pipeline import Options, passes
from compiler_layer.tools.command import Commands, declare


def add_to(commands: Commands) -> None:
    """Declare the command."""
    declare(commands, "passes", _run, "list the passes in order, with what they do")


def _run(arguments: argparse.Namespace) -> int:
    del arguments
    for each in passes(Options()):
        print(f"{each.name:<20} {(type(each).__doc__ or '').splitlines()[0]}")
    return 0
