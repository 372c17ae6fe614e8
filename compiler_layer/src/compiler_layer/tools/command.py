"""How a tool with several commands is declared and run; those of layers above use it, too."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from driver_layer.tools.streams import complain, run_tool


class Commands(Protocol):
    """What ``add_subparsers`` gives; argparse has no public name for it."""

    def add_parser(self, name: str, **settings: Any) -> argparse.ArgumentParser:
        """Add a command's parser."""
        ...


def declare(
    commands: Commands,
    name: str,
    run: Callable[[argparse.Namespace], int],
    summary: str,
    examples: str = "",
) -> argparse.ArgumentParser:
    """Add a command with a help that ends with examples."""
    parser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def make_parser(
    prog: str,
    description: str,
    epilog: str,
    commands: Iterable[Callable[[Commands], object]],
) -> argparse.ArgumentParser:
    """Make the parser of a tool.

    Args:
        prog: its name.
        description: what it does, in a sentence.
        epilog: examples.
        commands: each adds a command.
    """
    parser = argparse.ArgumentParser(
        prog=prog,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    added = parser.add_subparsers(required=True, metavar="COMMAND")
    for add_to in commands:
        add_to(added)
    return parser


def run_command(
    parser: argparse.ArgumentParser, argv: Sequence[str] | None, expected: type[Exception]
) -> int:
    """Run the command that is asked for; give the exit code.

    Args:
        parser: the tool's.
        argv: arguments; those of the process if not given.
        expected: the root of the layer's errors: they are told in a line, with exit code 2.
    """

    def run() -> int:
        arguments = parser.parse_args(argv)
        try:
            return arguments.run(arguments)
        except expected as error:
            complain(parser.prog, str(error))
            return 2

    return run_tool(parser.prog, run)
