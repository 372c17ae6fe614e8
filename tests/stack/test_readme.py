"""Examples of the documents: every Python block runs, and every command of README and models."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("*_layer/README.md")])


def blocks(page: Path, language: str) -> list[str]:
    """Return the code blocks of a page in one language."""
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


EXAMPLES = [
    pytest.param(block, id=f"{page.parent.name}-{page.stem}-{number}")
    for page in PAGES
    for number, block in enumerate(blocks(page, "python"))
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in which the documents' relative paths to models exist."""
    (tmp_path / "models").symlink_to(ROOT / "models")
    return tmp_path


@pytest.mark.matrix
@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_runs_as_it_stands(example: str, folder: Path) -> None:
    result = _run([sys.executable, "-W", "error", "-c", example], folder)
    assert result.returncode == 0, result.stderr[-2000:]
    assert result.stdout.strip(), "an example shows something"


def commands(page: Path) -> Iterator[list[str]]:
    """Yield the commands of a page's shell blocks, as words."""
    for line in "".join(blocks(page, "sh")).splitlines():
        if words := shlex.split(line, comments=True):
            yield words


def test_the_commands_of_the_readme_run_and_the_demo_answers() -> None:
    if Path(sys.prefix) != ROOT / ".venv":
        pytest.skip("make would set up the .venv of this checkout, in which the tests do not run")
    found = list(commands(ROOT / "README.md"))
    programs = [words[0] for words in found]
    assert programs == ["make", "make", "make", ".venv/bin/pip", ".venv/bin/npu-run"]
    for words, expected in ((found[0], "An NPU"), (found[1], ""), (found[4], "['CPU', 'NPU']")):
        result = _run(words, ROOT)
        assert result.returncode == 0, result.stderr[-2000:]
        assert expected in result.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_a_page_that_shows_npu_run_installs_first_what_it_needs(page: Path) -> None:
    before, shown, _ = "".join(blocks(page, "sh")).partition("npu-run ")
    assert not shown or '"./driver_layer[c-abi]"' in before


def test_the_commands_of_the_page_on_models_run(folder: Path) -> None:
    found = list(commands(ROOT / "docs" / "models.md"))
    assert found
    for words in found:
        result = _run([str(Path(sys.executable).parent / words[0]), *words[1:]], folder)
        assert result.returncode == 0, result.stderr[-2000:]


def test_the_readme_has_an_example_of_about_ten_lines_for_each_layer() -> None:
    found = blocks(ROOT / "README.md", "python")
    assert len(found) == 4
    for layer, block in zip(("genai", "npuw", "compiler", "driver"), found, strict=True):
        assert f"from {layer}_layer" in block
        others = {"genai", "npuw", "compiler", "driver"} - {layer}
        assert not any(f"{other}_layer" in block for other in others), "each layer alone"
        lines = [line for line in block.splitlines() if line.strip()]
        assert 7 <= len(lines) <= 12


def test_the_readme_fits_two_screens_and_has_the_picture() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 140
    assert "docs/architecture.svg" in text


def test_the_architecture_names_each_folder_of_each_layer_and_no_other() -> None:
    sections = re.split(r"\n## ", (ROOT / "docs" / "architecture.md").read_text())[1:]
    named = {
        section.split("\n", 1)[0]: set(re.findall(r"^\| `([a-z_]+)/` \|", section, re.MULTILINE))
        for section in sections
    }
    for layer in ("genai_layer", "npuw_layer", "compiler_layer", "driver_layer"):
        source = ROOT / layer / "src" / layer
        assert named[layer] == {init.parent.name for init in source.glob("*/__init__.py")}


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: os.environ[name] for name in os.environ if name != "MAKEFLAGS"}
    folders = [str(Path(sys.executable).parent), environment.get("PATH", os.defpath)]
    environment["PATH"] = os.pathsep.join(folders)
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
