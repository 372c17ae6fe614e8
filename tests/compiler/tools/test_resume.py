"""Compilation resumed from the text of ``npuc compile --stop-after``: it produces the same blob."""

from __future__ import annotations

import re
import shutil
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

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


UNFOLDED = ("fold-constants", "lower-attention", "tile")
"""Passes after which a model without folding is resumed, too."""


class Compiled(NamedTuple):
    """A blob of the demo model, and the text that ``npuc compile`` printed after each pass."""

    blob: bytes
    texts: dict[str, str]


def printed(*argv: object) -> str:
    """Return the output of ``npuc compile``."""
    with redirect_stdout(StringIO()) as out:
        assert main(["compile", *map(str, argv)]) == 0
    return out.getvalue()


@pytest.fixture(scope="module")
def compiled(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Compiled]:
    """Return the demo model compiled once with folding and once without."""
    folder = tmp_path_factory.mktemp("direct")
    found: dict[bool, Compiled] = {}
    for fold in (True, False):
        blob = folder / "demo.blob"
        options = [] if fold else ["--no-fold"]
        text = printed(demo, "-o", blob, "--print-ir-after-all", *SHAPES, *options)
        parts = re.split(r"^(?=// IR after )", text, flags=re.MULTILINE)[1:]
        texts = {part.split()[3]: part for part in parts}
        found[fold] = Compiled(blob.read_bytes(), texts)
    return found


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("name", "fold"), [*((name, True) for name in NAMES), *((name, False) for name in UNFOLDED)]
)
def test_resuming_after_each_pass_produces_the_same_blob(
    compiled: dict[bool, Compiled], tmp_path: Path, name: str, fold: bool
) -> None:
    options = [] if fold else ["--no-fold"]
    text, blob = tmp_path / "demo.mlir", tmp_path / "demo.blob"
    text.write_text(compiled[fold].texts[name])
    shapes = SHAPES if name in BEFORE_SHAPES else []
    assert main(["compile", str(text), "-o", str(blob), *shapes, *options]) == 0
    assert blob.read_bytes() == compiled[fold].blob


def test_stop_after_prints_the_same_text_as_print_ir_after_all(
    demo: Path, compiled: dict[bool, Compiled]
) -> None:
    for fold, options in ((True, []), (False, ["--no-fold"])):
        stopped = printed(demo, "--stop-after", "lift-state", *SHAPES, *options)
        assert stopped == compiled[fold].texts["lift-state"]


@pytest.fixture(scope="module")
def lifted(demo: Path) -> str:
    """Return the text of the demo model after ``lift-state``."""
    return printed(demo, "--stop-after", "lift-state", *SHAPES)


def test_a_pass_that_has_already_run_is_refused(
    compiled: dict[bool, Compiled], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "demo.mlir"
    text.write_text(compiled[True].texts["tile"])
    assert main(["compile", str(text), "--stop-after", "simplify"]) == 2
    assert "pass 'simplify' has already run" in capsys.readouterr().err
    assert main(["compile", str(text), "-o", str(tmp_path / "b"), *SHAPES]) == 2
    assert "no input or variable 'past_key_values.*'" in capsys.readouterr().err


DAMAGE = {
    "repetitions": ("ov.repetitions = 4", "ov.repetitions = 9"),
    "no number": ("ov.repetitions = 4 : i64", 'ov.repetitions = "4"'),
    "second": ("ov.second_repetition = 3", "ov.second_repetition = 2"),
    "no second": ("ov.second_repetition = 3 : i64, ", ""),
    "step": ("step = 1", "step = 0"),
    "prefix": ('prefix = "model.layers."', "prefix = 1"),
    "own": ("#ov.repeated<0 of", "#ov.repeated<7 of"),
    "an id": ('"past_key_values.1.keypresent.1.key", ', ""),
    "another id": ('"past_key_values.3.keypresent.3.key"', '"elsewhere"'),
    "a pass": ('npuc.after = "lift-state"', 'npuc.after = "lunch"'),
}


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("kept", "said"),
    [(None, "the weights cannot be read"), (0, "cannot be read"), (9, "but the file has 9")],
)
def test_missing_or_truncated_weights_are_reported_in_one_line(
    demo: Path,
    lifted: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    kept: int | None,
    said: str,
) -> None:
    """The text refers to weight files that may have been removed or truncated since."""
    folder, text, blob = tmp_path / "model", tmp_path / "demo.mlir", tmp_path / "demo.blob"
    shutil.copytree(demo, folder)
    text.write_text(lifted.replace(str(demo), str(folder)))
    for weights in folder.glob("*.safetensors"):
        whole = weights.read_bytes()
        weights.unlink()
        if kept is not None:
            weights.write_bytes(whole[:kept])
    assert main(["compile", str(text), "-o", str(blob)]) == 2
    found = capsys.readouterr().err
    assert found.startswith("npuc: ")
    assert said in found
    assert "Traceback" not in found
    assert not blob.exists()


@pytest.mark.matrix
@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_text_is_refused_in_one_line(
    lifted: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    blob = tmp_path / "demo.blob"
    old, new = DAMAGE[name]
    assert old in lifted
    (tmp_path / "demo.mlir").write_text(lifted.replace(old, new))
    assert main(["compile", str(tmp_path / "demo.mlir"), "-o", str(blob)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("npuc: ")
    assert "Traceback" not in said
    assert not blob.exists()
