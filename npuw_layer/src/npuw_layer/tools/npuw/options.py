"""``npuw options``."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby

import click

from driver_layer.support.command import Command
from npuw_layer.options import ABSENT, Described, describe
from npuw_layer.options.parse import check_names
from npuw_layer.tools.npuw.completion import complete_names

_EXAMPLES = """\
  npuw options                             all options, by group
  npuw options NPUW_LLM_PREFILL_HINT       one option; several names are allowed
  npuw options --json | jq '.[].name'      as JSON

Pass options to Core().compile_model(model, "NPU", {...}), and to npu-chat with -c NAME=VALUE;
CompiledModel.get_property(NAME) returns each as set.
"""

_WIDEST = 100
"""Maximum characters of a readable line of prose."""

_BOLD, _PLAIN = "\033[1m", "\033[0m"


@click.command("options", cls=Command, epilog=_EXAMPLES)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_names)
@click.option("--json", "as_json", is_flag=True, help="print a JSON list of objects")
def options_command(names: Sequence[str], as_json: bool) -> None:
    """List the options of compiled models."""
    check_names(names)
    by_name = {one.name: one for one in describe()}
    chosen = [by_name[name] for name in names] if names else list(by_name.values())
    if as_json:
        print(json.dumps([asdict(one) for one in chosen], indent=2))
        return
    on_terminal = sys.stdout.isatty()
    width = min(_WIDEST, shutil.get_terminal_size().columns) if on_terminal else _WIDEST
    for line in _listed(chosen, width, on_terminal):
        print(line)
    for line in _not_here(width, on_terminal) if not names else ():
        print(line)


def _listed(options: Sequence[Described], width: int, bold: bool) -> Iterator[str]:
    """Yield a paragraph for each option, below the title of its group."""
    begin, end = (_BOLD, _PLAIN) if bold else ("", "")
    for number, (group, members) in enumerate(groupby(options, lambda one: one.group)):
        if number:
            yield ""
        yield f"{begin}{group}{end}"
        for one in members:
            default = "(unset)" if one.default is None else one.default or "(empty)"
            yield f"  {begin}{one.name}{end} = {default}   {one.type}, {one.source}"
            for text in (f"{one.allowed[0].upper()}{one.allowed[1:]}.", one.effect):
                yield from textwrap.wrap(
                    text, width, initial_indent="      ", subsequent_indent="      "
                )


def _not_here(width: int, bold: bool) -> Iterator[str]:
    """Yield OpenVINO's options that are not supported, grouped by reason."""
    begin, end = (_BOLD, _PLAIN) if bold else ("", "")
    yield f"\n{begin}Options of OpenVINO that are not supported{end}"
    for reason in dict.fromkeys(ABSENT.values()):
        names = ", ".join(name for name, why in ABSENT.items() if why == reason)
        yield from textwrap.wrap(
            f"{names}: {reason}.", width, initial_indent="  ", subsequent_indent="      "
        )
