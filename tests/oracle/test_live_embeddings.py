"""Models with inputs or outputs besides ids and logits, compared to the real NPUW, live.

Language parts of vision models take embeddings, and image features or inputs of each layer;
Eagle's target returns hidden states, and its draft model takes them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle.real_npuw import EXACT, EXACTLY, ON_CPU

from npuw_layer import Core

pytestmark = pytest.mark.oracle

VLM = Path(__file__).resolve().parent.parent / "goldens" / "exported" / "vlm"
NPUW = ON_CPU | EXACTLY
STATES = "last_hidden_state"
LENGTHS = {"NPUW_LLM_MAX_PROMPT_LEN": 128, "NPUW_LLM_MIN_RESPONSE_LEN": 64}
CHUNKED = LENGTHS | {"NPUW_LLM_PREFILL_CHUNK_SIZE": 32}
WHOLE = LENGTHS | {"NPUW_LLM_PREFILL_HINT": "STATIC"}


class Model:
    """Restored IR, and its inputs."""

    def __init__(self, path: Path, drawn: Any) -> None:
        self.path = path
        self.drawn = drawn

    def ours(self, options: dict[str, Any]) -> Callable[[int, int], np.ndarray]:
        own = {"INFERENCE_PRECISION_HINT": "f32", "NPUW_LLM_PREFILL_PYRAMID": "NO"}
        config = own | options
        return self._teller(Core().compile_model(self.path, "NPU", config), None)

    def theirs(self, device: str, options: dict[str, Any]) -> Callable[[int, int], np.ndarray]:
        core = ov.Core()
        compiled = core.compile_model(core.read_model(self.path), device, EXACT | options)
        return self._teller(compiled, {name for port in compiled.inputs for name in port.names})

    def _teller(self, compiled: Any, known: set[str] | None) -> Callable[[int, int], np.ndarray]:
        request = compiled.create_infer_request()

        def tell(begin: int, end: int) -> np.ndarray:
            inputs = self.drawn.inputs(begin, end)
            if known is not None:
                if not begin:
                    request.reset_state()
                inputs = {name: value for name, value in inputs.items() if name in known}
            request.infer(inputs)
            return np.array(request.get_tensor("logits").data[0, -1])

        return tell


@pytest.fixture(scope="module")
def model(
    load_module: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Model]:
    restore = load_module(VLM.parent / "restore.py").restore
    drawn = load_module(VLM / "drawn.py").Drawn

    def make(name: str) -> Model:
        goldens = np.load(VLM / f"{name}.npz")
        beside = [*map(str, goldens["beside"])] if "beside" in goldens else []
        drawn_here = drawn(int(goldens["position_axes"]), seed=8, beside=beside)
        return Model(restore(VLM, name, tmp_path_factory.mktemp(name)), drawn_here)

    return make


def distance(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


WAYS = {"whole": WHOLE, "chunked": CHUNKED}
MODELS = ("llava", "qwen2_vl", "qwen2_5_vl", "gemma3", "qwen3_vl")


@pytest.mark.parametrize(
    ("name", "way"), [*((name, way) for name in MODELS for way in WAYS), ("gemma3n", "whole")]
)
def test_logits_equal_those_of_the_real_npuw(model: Any, name: str, way: str) -> None:
    one, options = model(name), WAYS[way]
    theirs, ours = one.theirs("NPU", NPUW | options), one.ours(options)
    for begin, end in ((0, 100), *((at, at + 1) for at in range(100, 112))):
        assert distance(ours(begin, end), theirs(begin, end)) <= 1e-4


def test_npuw_splits_images_between_chunks_and_we_reject_them(model: Any) -> None:
    """Both agree on whole prompts; in chunks NPUW's logits differ, without an error."""
    one = model("gemma3_types")
    expected = one.theirs("CPU", {})(0, 100)
    assert distance(one.ours(WHOLE)(0, 100), expected) <= 1e-4
    assert distance(one.theirs("NPU", NPUW | WHOLE)(0, 100), expected) <= 1e-4
    with pytest.raises(RuntimeError, match="PREFILL_HINT"):
        one.ours(CHUNKED)
    chunked = one.theirs("NPU", NPUW | CHUNKED)(0, 100)
    assert distance(chunked, expected) > 1e-3, "fixed in NPUW: update the README"


def test_npuw_mixes_up_image_features_and_we_do_not(model: Any) -> None:
    """NPUW's logits for an IR of current exporters differ, without an error."""
    one = model("qwen3_vl_gathered")
    expected = one.theirs("CPU", {})(0, 100)
    assert distance(one.ours(CHUNKED)(0, 100), expected) <= 1e-4
    assert distance(one.theirs("NPU", NPUW | WHOLE)(0, 100), expected) > 1e-3, "update the README"


def test_npuw_drops_an_image_after_the_prompt_and_we_do_not(model: Any) -> None:
    """A step of NPUW has zeros in place of the image features."""
    one = model("qwen3_vl")
    one.drawn.marks[0, 100] = True
    found = []
    for tell in (one.theirs("CPU", {}), one.ours(CHUNKED), one.theirs("NPU", NPUW | CHUNKED)):
        tell(0, 100)
        found.append(tell(100, 101))
    expected, ours, theirs = found
    assert distance(ours, expected) <= 1e-4
    assert distance(theirs, expected) > 1e-3, "fixed in NPUW: update the README"


@pytest.fixture(scope="module")
def images(model: Any) -> Any:
    """Models of this stack by chunk size, and OpenVINO's CPU plugin, which reads whole prompts."""
    one = model("qwen3_vl")
    sizes = (16, 64)
    ours = {size: one.ours(LENGTHS | {"NPUW_LLM_PREFILL_CHUNK_SIZE": size}) for size in sizes}
    return one.drawn, ours, one.theirs("CPU", {})


@settings(max_examples=16, deadline=None, derandomize=True)
@given(
    st.sampled_from([16, 64]),
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 40)), max_size=4),
    st.integers(2, 120),
    st.integers(0, 4),
)
def test_images_at_any_position_agree(
    images: Any, chunk: int, runs: list[tuple[int, int]], prompt: int, steps: int
) -> None:
    """Alternating runs of text and image tokens, in prompts and in steps."""
    drawn, ours, theirs = images
    marks = np.concatenate([np.repeat([False, True], run) for run in [*runs, (160, 0)]])
    drawn.marks = marks[None, :160]
    for begin, end in ((0, prompt), *((at, at + 1) for at in range(prompt, prompt + steps))):
        assert distance(ours[chunk](begin, end), theirs(begin, end)) <= 1e-4


@pytest.fixture(scope="module")
def turns(model: Any) -> Any:
    """Models of this stack, which rewind, and OpenVINO's CPU plugin, which starts over."""
    options = CHUNKED | {"NPUW_LLM_ENABLE_CONTINUOUS_PREFILL": "YES"}
    found = {}
    for name in ("llava", "qwen2_vl"):
        one = model(name)
        found[name] = one.ours(options), one.theirs("CPU", {})
    return found


@pytest.mark.parametrize("name", ["llava", "qwen2_vl"])
@settings(max_examples=8, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 100), st.integers(1, 60)), min_size=1, max_size=5))
def test_rewinding_and_continuing_equals_a_whole_prompt(
    turns: Any, name: str, jumps: list[tuple[int, int]]
) -> None:
    ours, theirs = turns[name]
    ours(0, 2)
    said = 2
    for back, more in jumps:
        begin = max(said - back, 0)
        said = min(begin + more, 128)
        begin = min(begin, said - 1)
        assert distance(ours(begin, said), theirs(0, said)) <= 1e-4


@pytest.mark.parametrize("options", [WHOLE, CHUNKED], ids=["whole", "chunked"])
def test_hidden_states_of_tokens_equal_the_real_npuws(
    load_module: Callable[[Path], Any], tmp_path: Path, options: dict[str, Any]
) -> None:
    """NPUW pads its hidden states on the left in some cases; the last rows are the tokens'."""
    restore = load_module(VLM.parent / "restore.py").restore
    path = restore(VLM.parent / "eagle", "target", tmp_path)
    eagle = {"NPUW_EAGLE": "YES", "NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 8}
    core = ov.Core()
    config = EXACT | NPUW | options | eagle
    theirs = core.compile_model(core.read_model(path), "NPU", config).create_infer_request()
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    ours = Core().compile_model(path, "NPU", options | eagle | exact).create_infer_request()
    ids = np.random.default_rng(5).integers(0, 1000, 80)
    for begin, end in ((0, 70), (70, 73), (71, 76)):
        inputs = {
            "input_ids": ids[None, begin:end],
            "attention_mask": np.ones((1, end), np.int64),
            "position_ids": np.arange(begin, end)[None],
        }
        theirs.infer(inputs)
        found = ours.infer(inputs)
        for name in ("logits", "last_hidden_state"):
            expected = theirs.get_tensor(name).data[:, -found[name].shape[1] :]
            assert distance(found[name], expected) <= 1e-4


@pytest.mark.parametrize("options", [WHOLE, CHUNKED], ids=["whole", "chunked"])
def test_a_draft_takes_the_targets_hidden_states_and_returns_its_own(
    load_module: Callable[[Path], Any], tmp_path: Path, options: dict[str, Any]
) -> None:
    """The real NPUW returns those of a prompt's or chunk's last token; steps return all."""
    restore = load_module(VLM.parent / "restore.py").restore
    path = restore(VLM.parent / "eagle", "draft", tmp_path)
    eagle = {"NPUW_EAGLE": "YES", "NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 8}
    core = ov.Core()
    model = core.read_model(path)
    for result in model.get_results():
        if "last_hidden_state" in result.output(0).get_names():
            # Marked as in openvino_genai, as otherwise NPUW takes the states for logits.
            result.get_rt_info()["manually_added_output"] = True
    theirs = core.compile_model(model, "NPU", EXACT | NPUW | options | eagle)
    whole = core.compile_model(path, "CPU", EXACT).create_infer_request()
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    ours = Core().compile_model(path, "NPU", options | eagle | exact).create_infer_request()
    request = theirs.create_infer_request()
    draw = np.random.default_rng(5)
    ids = draw.integers(0, 1000, 80)
    states = draw.standard_normal((1, 80, 96)).astype("f4")
    for begin, end in ((0, 70), (70, 73), (73, 76)):
        inputs = {
            "input_ids": ids[None, begin:end],
            "hidden_states": states[:, begin:end],
            "attention_mask": np.ones((1, end), np.int64),
            "position_ids": np.arange(begin, end)[None],
        }
        request.infer(inputs)
        whole.infer({**inputs, "beam_idx": np.zeros(1, np.int32)})
        found = ours.infer(inputs)
        assert distance(found[STATES], whole.get_tensor(STATES).data) <= 1e-4
        for name, count in (("logits", found["logits"].shape[1]), (STATES, 1 if not begin else 3)):
            expected = request.get_tensor(name).data[:, -count:]
            assert distance(found[name][:, -count:], expected) <= 1e-4
