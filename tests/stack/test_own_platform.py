"""User-defined platforms: a changed copy of a platform's file is accepted as a platform."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from compiler_layer.explain import explain
from compiler_layer.tools.npuc import main
from driver_layer import ze
from driver_layer.abi import platforms
from npuw_layer import Core
from npuw_layer.errors import NpuwError

SHAPES = [
    f"--shape={shape}"
    for shape in ("*_mask=1x24", "*_ids=1x8", "beam_idx=1", "past_key_values.*=1x4x16x32")
]


@pytest.fixture
def narrow(tmp_path: Path) -> Path:
    """Platform file of NPU 4000 with a quarter of its memory bandwidth and half of its CMX."""
    text = files(platforms).joinpath("4000.toml").read_text()
    for old, new in (
        ('name = "4000"', 'name = "narrow"'),
        ("ddr_mb_per_s = 136_000", "ddr_mb_per_s = 34_000"),
        ("workspace_bytes = 1_473_536", "workspace_bytes = 700_000"),
    ):
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "narrow.toml"
    path.write_text(text)
    return path


def test_npuc_accepts_a_platform_file(demo: Path, narrow: Path, tmp_path: Path) -> None:
    blob = tmp_path / "demo.blob"
    argv = ["compile", str(demo), "-o", str(blob), *SHAPES, "--platform", str(narrow)]
    assert main(argv) == 0
    data = blob.read_bytes()
    assert max(layer.cmx_bytes for layer in explain(data).layers) <= 700_000
    assert explain(data, platform=str(narrow)).total_ns > 1.2 * explain(data).total_ns


@pytest.mark.long
def test_a_conversation_runs_on_a_platform_file_and_a_change_recompiles(
    demo: Path, narrow: Path, tmp_path: Path
) -> None:
    lengths = {"NPUW_LLM_MAX_PROMPT_LEN": 16, "NPUW_LLM_MIN_RESPONSE_LEN": 16}
    options = {**lengths, "CACHE_DIR": str(tmp_path / "cache"), "INFERENCE_PRECISION_HINT": "f32"}
    inputs = {
        "input_ids": np.array([[5, 6, 7, 8]]),
        "attention_mask": np.ones((1, 4), np.int64),
        "position_ids": np.arange(4)[None],
    }
    logits: list[np.ndarray] = []
    blobs: list[int] = []
    for number in range(3):
        if number == 2:
            narrow.write_text(narrow.read_text().replace("34_000", "17_000"))
        platform = str(narrow) if number else "4000"
        request = (
            Core().compile_model(demo, "NPU", {**options, "NPU_PLATFORM": platform})
        ).create_infer_request()
        logits.append(request.infer(inputs)["logits"].copy())
        blobs.append(len(list((tmp_path / "cache").glob("**/*.blob"))))
    for other in logits[1:]:
        assert np.abs(other - logits[0]).max() <= 1e-4 * np.abs(logits[0]).max()
    assert blobs[0] < blobs[1] < blobs[2], "blobs of the previous file must not be found"


def test_an_unknown_platform_is_named_with_the_known_ones(
    demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("4001", str(tmp_path / "none.toml")):
        with pytest.raises(
            ze.ZeError, match=r"4001.{0,3}: unknown platform|none.toml: No such file"
        ):
            ze.simulated_driver(name)
        with pytest.raises(
            NpuwError, match=r"4001.{0,3}: unknown platform|none.toml: No such file"
        ):
            Core().compile_model(demo, "NPU", {"NPU_PLATFORM": name})
        argv = ["compile", str(demo), "-o", str(tmp_path / "b"), *SHAPES, "--platform", name]
        assert main(argv) == 2
        assert capsys.readouterr().err.count("\n") == 1
