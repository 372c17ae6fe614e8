"""Stateful ONNX decoders compared to OpenVINO's CPU plugin and to the real NPUW, live.

OpenVINO reads them from ONNX, and they are made stateful as in the golden script. The real NPUW
agrees only if the prompt is exactly one chunk: it does not compile whole prompts, shorter prompts
address rows outside of its cache, and longer ones forget the tokens before the last chunk. If one
of these tests fails with a newer ``openvino``, the defect is fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import GOLDENS, ROOT
from tests.oracle.real_npuw import EXACT, EXACTLY, ON_CPU

from npuw_layer import Core

pytestmark = pytest.mark.oracle

LENGTHS = {"NPUW_LLM_MAX_PROMPT_LEN": 128, "NPUW_LLM_MIN_RESPONSE_LEN": 64}
CHUNKED = LENGTHS | {"NPUW_LLM_PREFILL_CHUNK_SIZE": 16}
WHOLE = LENGTHS | {"NPUW_LLM_PREFILL_HINT": "STATIC"}
F32 = {"INFERENCE_PRECISION_HINT": "f32"}
KINDS = ("plain", "window", "positions")
VOCABULARY = 60


class Reader:
    """Conversation that runs tokens in one or several inferences, and can be rewound."""

    def __init__(self, compiled: Any, positions: bool) -> None:
        self._request = compiled.create_infer_request()
        self._positions = positions
        self.told: list[int] = []

    def tell(self, ids: Sequence[int]) -> np.ndarray:
        """Run further tokens; return the last one's logits."""
        begin, end = len(self.told), len(self.told) + len(ids)
        feeds = {
            "input_ids": np.array([ids], np.int64),
            "attention_mask": np.ones((1, end), np.int64),
            "beam_idx": np.zeros(1, np.int32),
        }
        if self._positions:
            feeds["position_ids"] = np.arange(begin, end)[None]
        self._request.infer(feeds)
        self.told += ids
        return np.array(self._request.get_tensor("logits").data[0, -1])


@pytest.fixture(scope="module")
def tool(load_module: Callable[[Path], Any], monkeypatch_module: pytest.MonkeyPatch) -> Any:
    """The script that wrote the golden files, which makes models stateful."""
    monkeypatch_module.syspath_prepend(str(ROOT / "tools"))
    return load_module(ROOT / "tools" / "make_stateful_gqa_goldens.py")


@pytest.fixture(scope="module")
def monkeypatch_module() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def theirs(tool: Any, grouped: Path) -> Callable[..., Reader]:
    """Return a function that begins a conversation with the stateful model on OpenVINO."""
    compiled = {
        kind: ov.Core().compile_model(tool.stateful(grouped / f"{kind}.onnx"), "CPU", EXACT)
        for kind in KINDS
    }
    return lambda kind: Reader(compiled[kind], kind == "positions")


@pytest.fixture(scope="module")
def ours(grouped: Path) -> Callable[..., Reader]:
    """Return a function that begins a conversation with this stack's static models."""
    options = CHUNKED | F32 | {"NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 8}
    ways = {"chunked": options, "whole": WHOLE | F32 | {"NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 8}}
    compiled = {
        (kind, way): Core().compile_model(grouped / f"{kind}.xml", "NPU", chosen)
        for kind in KINDS
        for way, chosen in ways.items()
    }
    return lambda kind, way: Reader(compiled[kind, way], True)


def distance(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


@settings(max_examples=25, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    way=st.sampled_from(["chunked", "whole"]),
    prompt=st.lists(st.integers(0, VOCABULARY - 1), min_size=2, max_size=100),
    steps=st.lists(st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=8), max_size=6),
    back=st.integers(0, 20),
)
def test_logits_equal_the_unpadded_models(
    ours: Any,
    theirs: Any,
    kind: str,
    way: str,
    prompt: list[int],
    steps: list[list[int]],
    back: int,
) -> None:
    mine, real = ours(kind, way), theirs(kind)
    for ids in (prompt, *steps):
        assert distance(mine.tell(ids), real.tell(ids)) <= 1e-5
    del mine.told[max(len(mine.told) - back, 1) :]
    assert distance(mine.tell([5, 4, 3]), theirs(kind).tell(mine.told)) <= 1e-5


def test_the_golden_files_equal_openvinos_output(
    tool: Any, grouped: Path, theirs: Any, tmp_path: Path
) -> None:
    said = np.load(GOLDENS / "stateful_gqa" / "plain.npz")
    assert distance(theirs("plain").tell(said["ids"][0].tolist()), said["logits"][-1]) <= 1e-6
    ov.save_model(tool.stateful(grouped / "plain.onnx"), tmp_path / "m.xml", compress_to_fp16=False)
    assert (tmp_path / "m.bin").read_bytes() == (grouped / "plain.bin").read_bytes()


def npuw(tool: Any, grouped: Path, options: dict[str, Any]) -> Reader:
    """Begin a conversation with the real NPUW, for which the model takes position_ids."""
    model = tool.stateful(grouped / "positions.onnx")
    return Reader(ov.Core().compile_model(model, "NPU", ON_CPU | EXACTLY | options), True)


def test_npuw_does_not_compile_whole_prompts(tool: Any, grouped: Path) -> None:
    with pytest.raises(RuntimeError, match="RemoveEmptyKVInputs"):
        npuw(tool, grouped, WHOLE)


def test_npuw_agrees_on_a_prompt_of_exactly_one_chunk(
    tool: Any, grouped: Path, ours: Any, theirs: Any
) -> None:
    ids = [n % VOCABULARY for n in range(7, 60, 3)]
    read = npuw(tool, grouped, CHUNKED)
    real, mine = theirs("positions"), ours("positions", "chunked")
    expected = real.tell(ids[:16])
    assert distance(read.tell(ids[:16]), expected) <= 1e-5
    assert distance(mine.tell(ids[:16]), expected) <= 1e-5
    steps = [(each.tell(ids[16:17]), each.tell(ids[17:18])) for each in (real, mine, read)]
    assert distance(steps[1][1], steps[0][1]) <= 1e-5
    assert distance(steps[2][1], steps[0][1]) > 1e-3


@pytest.mark.parametrize("count", [8, 50])
def test_npuw_fails_on_other_prompts(tool: Any, grouped: Path, theirs: Any, count: int) -> None:
    ids = [n * 7 % VOCABULARY for n in range(count)]
    read = npuw(tool, grouped, CHUNKED)
    if count < 16:
        with pytest.raises(RuntimeError, match="non-existing output tensor element"):
            read.tell(ids)
    else:
        assert distance(read.tell(ids), theirs("positions").tell(ids)) > 1e-3
