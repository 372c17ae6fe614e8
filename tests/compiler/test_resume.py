"""What ``npuc compile --stop-after`` prints is compiled on from there, to the same blob."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler_layer.pipeline import Options, passes
from compiler_layer.tools.npuc import main

SHAPES = [
    f"--shape={shape}"
    for shape in (
        "input_ids=1x8",
        "attention_mask=1x16",
        "position_ids=1x8",
        "beam_idx=1",
        "past_key_values.*=1x4x8x32",
    )
]
NAMES = [each.name for each in passes(Options())]
BEFORE_SHAPES = NAMES[: NAMES.index("specialize-shapes")]


@pytest.fixture(scope="module")
def blobs(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[bool, bytes]:
    """The blob of the demo model, folded and not."""
    folder = tmp_path_factory.mktemp("direct")
    found: dict[bool, bytes] = {}
    for fold in (True, False):
        blob = folder / "demo.blob"
        options = [] if fold else ["--no-fold"]
        assert main(["compile", str(demo), "-o", str(blob), *SHAPES, *options]) == 0
        found[fold] = blob.read_bytes()
    return found


@pytest.mark.parametrize("fold", [True, False], ids=["folded", "whole"])
@pytest.mark.parametrize("name", NAMES)
def test_from_each_pass_on_the_blob_is_the_same(
    demo: Path,
    blobs: dict[bool, bytes],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    fold: bool,
) -> None:
    if name == "fold-blocks" and not fold:
        return
    options = [] if fold else ["--no-fold"]
    assert main(["compile", str(demo), "--stop-after", name, *SHAPES, *options]) == 0
    text, blob = tmp_path / "demo.mlir", tmp_path / "demo.blob"
    text.write_text(capsys.readouterr().out)
    shapes = SHAPES if name in BEFORE_SHAPES else []
    assert main(["compile", str(text), "-o", str(blob), *shapes, *options]) == 0
    assert blob.read_bytes() == blobs[fold]


def test_a_text_is_not_taken_back(
    demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", str(demo), "--stop-after", "tile", *SHAPES]) == 0
    text = tmp_path / "demo.mlir"
    text.write_text(capsys.readouterr().out)
    assert main(["compile", str(text), "--stop-after", "simplify"]) == 2
    assert "has been through 'simplify' already" in capsys.readouterr().err
    assert main(["compile", str(text), "-o", str(tmp_path / "b"), *SHAPES]) == 2
    assert "no input or variable 'past_key_values.*'" in capsys.readouterr().err
