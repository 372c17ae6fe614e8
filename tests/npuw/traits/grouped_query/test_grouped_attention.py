"""Stateful decoders of ONNX Runtime are split like others, and equal OpenVINO.

The models are as onnxruntime-genai builds them, made stateful as by ONNX Runtime's OpenVINO
execution provider; OpenVINO read each text in one run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import GOLDENS
from tests.npuw.conftest import Talk
from tests.npuw.splitting import split

from compiler_layer.builder import GraphBuilder
from compiler_layer.compile import compile_model, foldings
from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.dialects.ov.group_query_attention import GroupQueryAttention
from compiler_layer.frontends.openvino_ir import read_ir
from compiler_layer.model import Model
from compiler_layer.pipeline import Options
from npuw_layer import Core
from npuw_layer.backends.interpreter import InterpreterDevice
from npuw_layer.errors import ModelError

PROMPT = 50
LENGTHS = {
    "NPUW_LLM_MAX_PROMPT_LEN": 128,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    "INFERENCE_PRECISION_HINT": "f32",
}
CHUNKED = LENGTHS | {"NPUW_LLM_PREFILL_CHUNK_SIZE": 16, "NPUW_LLM_PREFILL_PYRAMID": "NO"}
SEVERAL_LENGTHS = CHUNKED | {"NPUW_LLM_PREFILL_PYRAMID": "YES"}
WAYS: dict[str, dict[str, Any]] = {
    "whole": LENGTHS | {"NPUW_LLM_PREFILL_HINT": "STATIC"},
    "pyramid": SEVERAL_LENGTHS | {"NPUW_LLM_GENERATE_ATTENTION_HINT": "PYRAMID"},
    "static, V as it is": CHUNKED
    | {"NPUW_LLM_PREFILL_ATTENTION_HINT": "STATIC", "NPUW_LLM_OPTIMIZE_V_TENSORS": "NO"},
    "host flash attention": CHUNKED
    | {"NPUW_LLM_PREFILL_ATTENTION_HINT": "HFA", "NPUW_LLM_GENERATE_ATTENTION_HINT": "HFA"},
    "dynamic": CHUNKED
    | {
        "NPUW_DEVICES": "NPU,CPU",
        "NPUW_LLM_PREFILL_ATTENTION_HINT": "DYNAMIC",
        "NPUW_LLM_GENERATE_ATTENTION_HINT": "DYNAMIC",
    },
    "in blocks": CHUNKED | {"NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "YES"},
    "several tokens at once, with its own head": CHUNKED
    | {"NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 8, "NPUW_LLM_SHARED_HEAD": "NO"},
    "variants": CHUNKED | {"NPUW_LLM_GENERATE_PYRAMID_STEPS": "52,56,192"},
    "in parts": CHUNKED | {"NPUW_ONLINE_PIPELINE": "REG"},
    "on OpenVINO": CHUNKED | {"NPUW_DEVICES": "OPENVINO_CPU"},
}
KINDS = ("plain", "positions", "smooth", "sinks", "nibbles")
"""The kind "window" runs in all configurations."""

Said = Mapping[str, np.ndarray]


def said(kind: str) -> Said:
    """Return OpenVINO's results: ids, logits of each, the first rows of two caches."""
    return dict(np.load(GOLDENS / "stateful_gqa" / f"{kind}.npz"))


def distance(found: Any, expected: np.ndarray) -> float:
    """Return the largest difference, relative to the largest expected value."""
    return float(np.abs(np.array(found) - expected).max() / np.abs(expected).max())


def check(talk: Talk, expected: Said, bound: float) -> None:
    """Compare a prompt, and the tokens generated after it."""
    ids, logits = expected["ids"][0], expected["logits"]
    found = [talk.tell(ids[:PROMPT]), *(talk.tell(ids[n : n + 1]) for n in range(PROMPT, len(ids)))]
    assert distance(found, logits[PROMPT - 1 :]) <= bound


def begun(grouped: Path, kind: str, options: dict[str, Any]) -> Talk:
    compiled: Any = Core().compile_model(grouped / f"{kind}.xml", "NPU", options)
    return Talk(compiled.create_infer_request())


@pytest.mark.matrix
@pytest.mark.parametrize("way", WAYS)
def test_all_configurations_give_the_same_logits(grouped: Path, way: str) -> None:
    check(begun(grouped, "window", WAYS[way]), said("window"), 1e-5)


@pytest.mark.matrix
@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_of_attention_are_supported(grouped: Path, kind: str) -> None:
    check(begun(grouped, kind, CHUNKED), said(kind), 1e-5)


@pytest.mark.matrix
@pytest.mark.parametrize("way", ["host flash attention", "in blocks", "static, V as it is"])
def test_attention_sinks_work_in_all_layouts(grouped: Path, way: str) -> None:
    check(begun(grouped, "sinks", WAYS[way]), said("sinks"), 1e-5)


def test_an_f16_model_gives_close_logits(grouped: Path) -> None:
    """The model's logits are f16, and rounded accordingly."""
    check(begun(grouped, "half", CHUNKED), said("half"), 4e-3)


def test_narrow_types_give_close_logits(grouped: Path) -> None:
    options = CHUNKED | {"INFERENCE_PRECISION_HINT": "f16"}
    check(begun(grouped, "window", options), said("window"), 2e-2)


def test_caches_are_those_of_the_stateful_model(grouped: Path) -> None:
    expected = said("plain")
    talk = begun(grouped, "plain", CHUNKED)
    talk.tell(expected["ids"][0])
    states = {each.name: each for each in talk.request.query_state()}
    kept = [name for name in expected if name.startswith("past")]
    assert kept == ["past_key_values.0.keypresent.0.key", "past_key_values.0.valuepresent.0.value"]
    for name in kept:
        values = states[name].state.data
        assert values.shape == (1, 2, 60, 8)
        assert distance(values[:, :, :2], expected[name]) <= 1e-5


@pytest.fixture(scope="module")
def begin(grouped: Path) -> Callable[..., Talk]:
    """Return a function that starts a conversation on the interpreter; models are compiled once."""
    compiled: dict[str, Any] = {}

    def start(kind: str, **options: Any) -> Talk:
        key = repr((kind, sorted(options.items())))
        if key not in compiled:
            core = Core(device=InterpreterDevice())
            path = grouped / f"{kind}.xml"
            compiled[key] = core.compile_model(path, "NPU", SEVERAL_LENGTHS | options)
        return Talk(compiled[key].create_infer_request())

    return start


@pytest.mark.long
@settings(max_examples=8, deadline=None)
@given(kind=st.sampled_from(["window", "sinks"]), data=st.data())
def test_tokens_may_be_split_anywhere_and_rewound(
    begin: Callable[..., Talk], kind: str, data: st.DataObject
) -> None:
    """Each sequence ends with the logits of the same tokens in one run."""
    draw = np.random.default_rng(data.draw(st.integers(0, 99)))
    more = {"NPUW_LLM_ENABLE_CONTINUOUS_PREFILL": "YES", "NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 4}
    talk = begin(kind, **more)
    told: list[int] = []
    for _ in range(data.draw(st.integers(1, 3))):
        back = data.draw(st.integers(0, max(len(told) - 1, 0)))
        del told[len(told) - back :]
        most = 12 if told else 40
        new = [*map(int, draw.integers(0, 60, data.draw(st.integers(1 if told else 2, most))))]
        found = talk.tell(new, back=back)
        told += new
    assert distance(found, begin(kind).tell(told)) <= 1e-5


@pytest.mark.matrix
@pytest.mark.parametrize("kind", ["window", "sinks"])
def test_conversations_run_together(grouped: Path, kind: str) -> None:
    """Each slot counts its own tokens."""
    options = CHUNKED | {"NPUW_LLM_BATCH_SLOTS": "2", "NPUW_DEVICES": "CPU"}
    compiled: Any = Core().compile_model(grouped / f"{kind}.xml", "NPU", options)
    ids, logits = said(kind)["ids"][0], said(kind)["logits"]
    engine = compiled.create_batching()
    ends = (50, 33)
    requests = [engine.open() for _ in ends]
    for round_ in range(4):
        heard = [
            request.submit([*map(int, ids[end + round_ - 1 :][:1])], end + round_ - 1)
            if round_
            else request.submit([*map(int, ids[:end])], 0)
            for request, end in zip(requests, ends, strict=True)
        ]
        while engine.wait(0):
            engine.step()
        for future, end in zip(heard, ends, strict=True):
            expected = logits[end + round_ - 1]
            assert distance(np.array(future.result()).reshape(-1), expected) <= 1e-5


@pytest.mark.parametrize("kind", ["plain", "positions"])
def test_the_rewritten_attention_is_that_of_other_decoders(grouped: Path, kind: str) -> None:
    model = split(read_ir(grouped / f"{kind}.xml"), 16, 48)
    ops = list(model.body.ops)
    assert not any(isinstance(op, GroupQueryAttention) for op in ops)
    layers = 5 if kind == "plain" else 2
    assert sum(isinstance(op, ScaledDotProductAttention) for op in ops) == layers
    counted = "cache_position" if kind == "plain" else "position_ids"
    assert {port.name for port in model.inputs} == {"attention_mask", counted, "input_ids"}


def test_equal_layers_are_compiled_once(grouped: Path) -> None:
    """The compiler folds equal layers, and reports layers that are not periodic."""
    smaller = next(foldings(read_ir(grouped / "plain.xml")))
    assert compile_model(split(smaller, 16, 48), Options(precision="f32", fold=False))


def changed(path: Path, change: Callable[[Model, GroupQueryAttention], None]) -> Model:
    model = read_ir(path)
    change(model, next(op for op in model.body.ops if isinstance(op, GroupQueryAttention)))
    return model


def _count_otherwise(model: Model, op: GroupQueryAttention) -> None:
    op.operands[5] = GraphBuilder(model, op).constant(np.array([[7]], np.int32))


def _count_what_is_not_there(model: Model, op: GroupQueryAttention) -> None:
    """Count the tenth token, which a short text lacks."""
    g = GraphBuilder(model, op)
    mask = next(port.value for port in model.inputs if port.name == "attention_mask")
    op.operands[5] = g.convert(g.gather(mask, g.ints(9), 1), "i32")


def _forget(model: Model, op: GroupQueryAttention) -> None:
    op.operands[3] = GraphBuilder(model, op).constant(np.zeros((1, 4, 3, 8), np.float32))


def _place_otherwise(model: Model, op: GroupQueryAttention) -> None:
    others = GraphBuilder(model, op).ints(1, 2, 3)
    op.operands[9] = GraphBuilder(model, op).unsqueeze(others, 0)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_count_otherwise, "seqlens_k must be the number of tokens in attention_mask less 1"),
        (_count_what_is_not_there, "seqlens_k must be the number of tokens"),
        (_forget, "its cache is not a variable; make the model stateful"),
        (_place_otherwise, "its position_ids must be the model's input of that name"),
    ],
)
def test_the_error_names_the_unsupported_op(grouped: Path, change: Any, says: str) -> None:
    model = changed(grouped / "positions.xml", change)
    with pytest.raises(ModelError, match=rf"present\.0\.value.*{says}"):
        split(model, 16, 48)


def test_more_tokens_than_rotary_factors_are_rejected(grouped: Path) -> None:
    options = LENGTHS | {"NPUW_LLM_MAX_PROMPT_LEN": 256}
    with pytest.raises(ModelError, match=r"tables have 256 rows, but a .* needs at least 261"):
        Core().compile_model(grouped / "plain.xml", "NPU", options)


def test_a_model_that_counts_tokens_itself_cannot_slide(grouped: Path) -> None:
    with pytest.raises(ModelError, match=r"the model counts tokens itself.*use TRUNCATE"):
        begun(grouped, "plain", CHUNKED | {"NPUW_LLM_ON_FULL": "SLIDE"})
