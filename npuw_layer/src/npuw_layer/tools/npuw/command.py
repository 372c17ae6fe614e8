"""How a command is declared."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, Protocol


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
