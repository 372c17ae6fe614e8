"""Commands without arguments: they work, or print on stderr what is possible."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = [
    script
    for project in sorted(ROOT.glob("*_layer/pyproject.toml"))
    for script in tomllib.loads(project.read_text())["project"]["scripts"].items()
]
WORKING = {"npu-smi", "npuw options", "npuw passes", "npuc passes"}


@pytest.mark.parametrize(("name", "place"), SCRIPTS)
def test_a_command_without_arguments_works_or_shows_its_help(
    name: str, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """All scripts of the four layers, and all their sub-commands."""
    module = importlib.import_module(place.partition(":")[0])
    commands = [*sub_commands(module)]
    for words in ([], *([command] for command in commands)):
        if " ".join([name, *words]) in WORKING:
            assert module.main(words) == 0
            assert capsys.readouterr().out
            continue
        with pytest.raises(SystemExit):
            module.main([*words, "--help"])
        shown = capsys.readouterr().out
        assert words or all(f"\n  {command} " in shown for command in commands)
        with pytest.raises(SystemExit) as ended:
            module.main(words)
        printed = capsys.readouterr()
        assert (ended.value.code, printed.out, printed.err) == (2, "", shown)


def sub_commands(module: Any) -> list[str]:
    """Return the names of the commands of a script that is a group."""
    groups = [one for one in vars(module).values() if isinstance(one, click.Group)]
    return [command for group in groups for command in group.commands]
