"""A Kokoro model compared to the real OpenVINO, live: its CPU plugin, and its NPUW.

By default the real NPUW rounds links between submodels to f16 (NPUW_F16IC), which is audible, as
rounding decides between phases π and -π. In f32 both agree: both compute on the same plugin, and
draw the same random numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from tests.oracle.real_npuw import EXACT

from npuw_layer import Core
from npuw_layer.options import parse_options

pytestmark = pytest.mark.oracle

GOLDENS = Path(__file__).resolve().parent.parent / "goldens"
KOKORO = {"NPUW_KOKORO": "YES"}
NPUW = KOKORO | {
    "NPU_USE_NPUW": "YES",
    "NPUW_DEVICES": "CPU",
    "NPUW_F16IC": "NO",
    "INFERENCE_PRECISION_HINT": "f32",
}
CUTS = [(200, 20), (40, 9), (30, 0), (25, 16)]
"""Blocks and overlaps: the default, an odd one, none, and nearly NPUW's largest: if blocks step by
less than half of the overlap, it reads before its first frame."""


@pytest.fixture(scope="module")
def text(load_module: Callable[[Path], Any]) -> Callable[..., dict[str, np.ndarray]]:
    return load_module(GOLDENS / "kokoro" / "texts.py").text


@pytest.fixture(scope="module")
def model(load_module: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    restore = load_module(GOLDENS / "exported" / "restore.py").restore
    return restore(GOLDENS / "kokoro", "kokoro", tmp_path_factory.mktemp("kokoro"))


def ours(model: Path, **more: object) -> Any:
    config = KOKORO | {"NPUW_DEVICES": "OPENVINO_CPU"} | more
    return Core().compile_model(model, "NPU", config).create_infer_request()


def npuw(model: Path, **more: object) -> Any:
    """Create a request of the real NPUW; a new core restarts its random numbers."""
    return ov.Core().compile_model(model, "NPU", NPUW | more).create_infer_request()


def theirs(model: Path, length: int) -> Any:
    """Create a request of the unsplit model on the CPU plugin, for a text of this length."""
    core = ov.Core()
    whole = core.read_model(model)
    whole.reshape({"input_ids": [1, length], "ref_s": [1, 256], "speed": [1]})
    return core.compile_model(whole, "CPU", EXACT).create_infer_request()


def say(request: Any, inputs: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return audio and durations of a request of either implementation."""
    found = [np.array(each) for each in request.infer(inputs).values()]
    return found[0], found[1]


@pytest.mark.parametrize(("block", "overlap"), CUTS)
def test_audio_and_durations_equal_the_real_npuws(
    model: Path, text: Callable[..., Any], block: int, overlap: int
) -> None:
    cut = {"NPUW_KOKORO_BLOCK_SIZE": block, "NPUW_KOKORO_OVERLAP_SIZE": overlap}
    mine, real = ours(model, **cut), npuw(model, **cut)
    for length in (24, 9):
        (audio, durations), (wanted, lasting) = (say(each, text(length)) for each in (mine, real))
        np.testing.assert_array_equal(durations, lasting)
        np.testing.assert_allclose(audio, wanted, atol=1e-6)


@pytest.mark.parametrize("length", [3, 7, 16, 23])
def test_one_block_equals_the_unsplit_model(
    model: Path, text: Callable[..., Any], length: int
) -> None:
    """The block has as many frames as the text; padding has no duration, and is not read."""
    audio, durations = say(theirs(model, length), text(length, length))
    cut = {"NPUW_KOKORO_BLOCK_SIZE": int(durations.sum()), "NPUW_KOKORO_OVERLAP_SIZE": 0}
    found, lasting = say(ours(model, **cut), text(length))
    np.testing.assert_array_equal(lasting[:length], durations)
    assert not lasting[length:].any()
    np.testing.assert_allclose(found, audio, atol=1e-5)


def test_options_have_the_defaults_of_the_real_npuw() -> None:
    core, options = ov.Core(), parse_options({})
    assert core.get_property("NPU", "NPUW_KOKORO") == options.kokoro
    assert core.get_property("NPU", "NPUW_KOKORO_BLOCK_SIZE") == options.kokoro_block_size
    assert core.get_property("NPU", "NPUW_KOKORO_OVERLAP_SIZE") == options.kokoro_overlap_size
    with pytest.raises(RuntimeError, match="Unsupported configuration key"):
        core.get_property("NPU", "NPUW_KOKORO_OVERLAP")


def test_an_overlap_of_a_complete_block_is_rejected_by_both(
    model: Path, text: Callable[..., Any]
) -> None:
    """The real NPUW rejects the overlap at run time."""
    cut = {"NPUW_KOKORO_BLOCK_SIZE": 30, "NPUW_KOKORO_OVERLAP_SIZE": 30}
    with pytest.raises(RuntimeError, match="NPUW_KOKORO_OVERLAP_SIZE"):
        ours(model, **cut)
    real = npuw(model, **cut)
    with pytest.raises(RuntimeError, match="NPUW_KOKORO_OVERLAP_SIZE"):
        real.infer(text(9))


def test_blocks_that_step_by_less_than_their_context_fail_only_in_npuw(
    model: Path, text: Callable[..., Any]
) -> None:
    cut = {"NPUW_KOKORO_BLOCK_SIZE": 25, "NPUW_KOKORO_OVERLAP_SIZE": 24}
    with pytest.raises(RuntimeError, match="phonemes_number"):
        npuw(model, **cut).infer(text(9))
    audio, durations = say(ours(model, **cut), text(9))
    assert audio.size == 120 * durations.sum()
    assert np.isfinite(audio).all()


def test_links_of_f16_are_audible(model: Path, text: Callable[..., Any]) -> None:
    """NPUW links submodels in f16 by default; this stack links them in the set precision."""
    cut = {"NPUW_KOKORO_BLOCK_SIZE": 42, "NPUW_KOKORO_OVERLAP_SIZE": 0}
    audio, durations = say(theirs(model, 9), text(9, 9))
    assert durations.sum() == 42
    rounded, _ = say(npuw(model, **cut, NPUW_F16IC="YES"), text(9))
    assert np.abs(rounded - audio).max() > 0.05
    np.testing.assert_allclose(say(ours(model, **cut), text(9))[0], audio, atol=1e-5)
