"""The pages say what is true: every Python example runs, every path exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("*_layer/README.md")])
EXAMPLES = [
    pytest.param(page, block, id=f"{page.parent.name}-{page.stem}-{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
]


@pytest.mark.matrix
@pytest.mark.parametrize(("page", "example"), EXAMPLES)
def test_an_example_runs_as_it_stands(page: Path, example: str, tmp_path: Path) -> None:
    (tmp_path / "models").symlink_to(ROOT / "models")
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", example],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, f"{page.name}: {result.stderr[-2000:]}"
    assert result.stdout.strip(), "an example shows something"


def test_the_readme_has_an_example_of_about_ten_lines_for_each_layer() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) == 4
    for layer, block in zip(("genai", "npuw", "compiler", "driver"), blocks, strict=True):
        assert f"from {layer}_layer" in block
        others = {"genai", "npuw", "compiler", "driver"} - {layer}
        assert not any(f"{other}_layer" in block for other in others), "each layer alone"
        lines = [line for line in block.splitlines() if line.strip()]
        assert 7 <= len(lines) <= 12


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_readme_shows_both_commands_and_the_picture() -> None:
    text = (ROOT / "README.md").read_text()
    assert "make demo" in text
    assert "make test" in text
    assert "docs/architecture.svg" in text
