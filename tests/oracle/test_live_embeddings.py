"""Models that take or give more than ids and logits, here and in the real NPUW, live.

The language parts of models that see take embeddings, and features of images or what each layer
takes beside; Eagle's target gives hidden states, and its draft takes them.
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
    """A restored IR, and what it is told."""

    def __init__(self, path: Path, drawn: Any) -> None:
        self.path = path
        self.drawn = drawn

    def ours(self, options: dict[str, Any]) -> Callable[[int, int], np.ndarray]:
        config = options | {"INFERENCE_PRECISION_HINT": "f32"}
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
def test_the_real_npuw_says_the_same(model: Any, name: str, way: str) -> None:
    one, options = model(name), WAYS[way]
    theirs, ours = one.theirs("NPU", NPUW | options), one.ours(options)
    for begin, end in ((0, 100), *((at, at + 1) for at in range(100, 112))):
        assert distance(ours(begin, end), theirs(begin, end)) <= 1e-4


def test_images_are_cut_there_and_refused_here(model: Any) -> None:
    """Read whole, both say the same; in chunks theirs says something else, without a word."""
    one = model("gemma3_types")
    expected = one.theirs("CPU", {})(0, 100)
    assert distance(one.ours(WHOLE)(0, 100), expected) <= 1e-4
    assert distance(one.theirs("NPU", NPUW | WHOLE)(0, 100), expected) <= 1e-4
    with pytest.raises(RuntimeError, match="PREFILL_HINT"):
        one.ours(CHUNKED)
    chunked = one.theirs("NPU", NPUW | CHUNKED)(0, 100)
    assert distance(chunked, expected) > 1e-3, "they mended it: tell so in the README"


def test_features_of_images_are_mixed_up_there_and_not_here(model: Any) -> None:
    """Of an IR as exporters write it now; theirs says something else, without a word."""
    one = model("qwen3_vl_gathered")
    expected = one.theirs("CPU", {})(0, 100)
    assert distance(one.ours(CHUNKED)(0, 100), expected) <= 1e-4
    assert distance(one.theirs("NPU", NPUW | WHOLE)(0, 100), expected) > 1e-3, "tell it the README"


def test_an_image_behind_the_prompt_is_forgotten_there_and_not_here(model: Any) -> None:
    """A step takes zeros in the place of its features there."""
    one = model("qwen3_vl")
    one.drawn.marks[0, 100] = True
    found = []
    for tell in (one.theirs("CPU", {}), one.ours(CHUNKED), one.theirs("NPU", NPUW | CHUNKED)):
        tell(0, 100)
        found.append(tell(100, 101))
    expected, ours, theirs = found
    assert distance(ours, expected) <= 1e-4
    assert distance(theirs, expected) > 1e-3, "they mended it: tell so in the README"


@pytest.fixture(scope="module")
def images(model: Any) -> Any:
    """Ours by chunk sizes, and OpenVINO's CPU plugin, which reads all at once."""
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
def test_images_may_be_anywhere(
    images: Any, chunk: int, runs: list[tuple[int, int]], prompt: int, steps: int
) -> None:
    """Images are runs of text and of tokens of an image, one after the other; in steps, too."""
    drawn, ours, theirs = images
    marks = np.concatenate([np.repeat([False, True], run) for run in [*runs, (160, 0)]])
    drawn.marks = marks[None, :160]
    for begin, end in ((0, prompt), *((at, at + 1) for at in range(prompt, prompt + steps))):
        assert distance(ours[chunk](begin, end), theirs(begin, end)) <= 1e-4


@pytest.fixture(scope="module")
def turns(model: Any) -> Any:
    """Ours, which goes back, and OpenVINO's CPU plugin, which is told all anew."""
    options = CHUNKED | {"NPUW_LLM_ENABLE_CONTINUOUS_PREFILL": "YES"}
    found = {}
    for name in ("llava", "qwen2_vl"):
        one = model(name)
        found[name] = one.ours(options), one.theirs("CPU", {})
    return found


@pytest.mark.parametrize("name", ["llava", "qwen2_vl"])
@settings(max_examples=8, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 100), st.integers(1, 60)), min_size=1, max_size=5))
def test_going_back_and_on_is_as_if_all_was_said_at_once(
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
def test_states_of_each_token_are_those_of_the_real_npuw(
    load_module: Callable[[Path], Any], tmp_path: Path, options: dict[str, Any]
) -> None:
    """Theirs are padded on the left, or not; the last ones are the tokens'."""
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
def test_a_draft_takes_the_states_of_the_target_and_gives_its_own(
    load_module: Callable[[Path], Any], tmp_path: Path, options: dict[str, Any]
) -> None:
    """The real NPUW gives those of the last token of a prompt, or chunk; steps give all."""
    restore = load_module(VLM.parent / "restore.py").restore
    path = restore(VLM.parent / "eagle", "draft", tmp_path)
    eagle = {"NPUW_EAGLE": "YES", "NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 8}
    core = ov.Core()
    model = core.read_model(path)
    for result in model.get_results():
        if "last_hidden_state" in result.output(0).get_names():
            # As openvino_genai says it, so that they are not taken for logits.
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
