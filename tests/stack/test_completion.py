"""Completion of all commands, in a real bash and a real zsh."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.terminals import Terminal

KILL_LINE = "\x15"  # Ctrl+U

ROOT = Path(__file__).resolve().parents[2]

SCRIPTS = {
    name: target
    for layer in ("driver", "compiler", "npuw", "genai")
    for name, target in tomllib.loads((ROOT / f"{layer}_layer/pyproject.toml").read_text())[
        "project"
    ]["scripts"].items()
}
"""Commands of all layers, as they are installed."""

WITH_COMPLETION = ("npu-chat", "npuw")
"""Commands whose completion is tried."""

SHELLS = [
    ["bash", "--norc", "-i"],
    pytest.param(
        ["zsh", "-f", "-i"], marks=pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh")
    ),
]


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the commands of this source tree."""
    folder = tmp_path_factory.mktemp("bin")
    for name, target in SCRIPTS.items():
        module, function = target.split(":")
        path = folder / name
        path.write_text(f"#!{sys.executable}\nfrom {module} import {function} as f\nexit(f())\n")
        path.chmod(0o755)
    return folder


@pytest.fixture(scope="module", params=SHELLS, ids=["bash", "zsh"])
def shell(
    request: pytest.FixtureRequest, commands: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Terminal]:
    """Return a shell with the completion of some commands, in a folder with a model."""
    argv: list[str] = request.param
    here = tmp_path_factory.mktemp("here")
    (here / "modelfolder").mkdir()
    variables = {"HOME": str(here), "PS1": "", "PATH": f"{commands}:/usr/bin:/bin"}
    with Terminal(argv, variables) as terminal:
        if argv[0] == "zsh":
            terminal.send("PROMPT=; autoload -U compinit; compinit -D\r")
        terminal.send(f"cd {here}\r")
        for name in WITH_COMPLETION:
            terminal.send(f'eval "$({name} --completion {argv[0]})"\r')
        terminal.send("echo rea''dy\r")
        terminal.expect("ready\r\n")
        yield terminal


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("npu-chat mod", "npu-chat modelfolder/"),
        ("npu-chat --pla", "npu-chat --plain "),
        ("npu-chat m -c MAX_P", "npu-chat m -c MAX_PROMPT_LEN="),
        ("npu-chat m -c CACHE_DIR=modelfo", "npu-chat m -c CACHE_DIR=modelfolder/"),
        ("npuw plan m --weights fp", "npuw plan m --weights fp16 "),
    ],
)
def test_the_tab_key_completes(shell: Terminal, typed: str, completed: str) -> None:
    shell.send(f"{typed}\t")
    shell.expect(completed)
    shell.send(KILL_LINE)


@pytest.mark.matrix
@pytest.mark.parametrize("name", sorted(SCRIPTS.keys() - {*WITH_COMPLETION}))
def test_each_other_command_prints_a_script_that_bash_accepts(commands: Path, name: str) -> None:
    script = f'. <("{commands / name}" --completion bash) && complete -p {name}'
    with Terminal(["bash", "-c", script]) as terminal:
        assert terminal.end() == 0, terminal.text
    assert terminal.text.endswith(f"_completion {name}\r\n")


@pytest.mark.parametrize(
    "variables",
    [
        {"_NPU_CHAT_COMPLETE": "bash_complete"},
        {"_NPU_CHAT_COMPLETE": "bash_complete", "COMP_WORDS": " "},
        {"_NPU_CHAT_COMPLETE": "zsh_complete", "COMP_WORDS": "npu-chat m", "COMP_CWORD": "x"},
    ],
)
def test_a_command_runs_if_no_shell_asks_for_completions(
    commands: Path, variables: dict[str, str]
) -> None:
    command = [commands / "npu-chat", "--help"]
    done = subprocess.run(
        command, env=os.environ | variables, capture_output=True, text=True, check=True
    )
    assert "npu-chat" in done.stdout
    assert done.stderr == ""


def test_genai_and_the_other_layers_complete_alike() -> None:
    """Both modules exist because genai_layer is installed without the driver."""

    def code(path: str) -> list[str]:
        return [ast.dump(each) for each in ast.parse((ROOT / path).read_text()).body[1:]]

    driver = code("driver_layer/src/driver_layer/support/completion.py")
    assert code("genai_layer/src/genai_layer/tools/completion.py") == driver
