"""Completion of options' names on the command line."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from npuw_layer.options import NAMES


def complete_names(
    _: click.Context, __: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """Complete the name of an option."""
    return [CompletionItem(name) for name in NAMES if name.startswith(incomplete)]


def complete_settings(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """Complete the name in OPTION=VALUE."""
    found = complete_names(context, parameter, incomplete)
    return [CompletionItem(f"{each.value}=") for each in found]


config_option = click.option(
    "-c",
    "config",
    multiple=True,
    metavar="OPTION=VALUE",
    shell_complete=complete_settings,
    help="an option of the compiled model; may be repeated",
)
"""Options of a compiled model, for commands that plan or split one."""
