"""LoRA adapters compared to the real OpenVINO: the adapted graph, and its results.

Two checks show that the graph is openvino_genai's: it has the same variables, and on the real CPU
plugin it generates the same tokens as openvino_genai. This stack is then compared to the graph.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest

from npuw_layer import Core

pytestmark = pytest.mark.oracle

GOLDENS = Path(__file__).resolve().parent.parent / "goldens"
EXACT = {
    "INFERENCE_PRECISION_HINT": "f32",
    "KV_CACHE_PRECISION": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
}
LENGTHS = {
    "NPUW_LLM_MAX_PROMPT_LEN": 128,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    "NPUW_LLM_ENABLE_CONTINUOUS_PREFILL": "YES",
    "INFERENCE_PRECISION_HINT": "f32",
}
NAMES = ("llama_fp16", "llama_int4", "gemma2_fp16")


@pytest.fixture(scope="module")
def golden() -> Mapping[str, Any]:
    """Golden values of tools/make_adapter_goldens.py."""
    return json.loads((GOLDENS / "adapters.json").read_text())


class Talk:
    """Request of either implementation that runs tokens."""

    def __init__(self, request: Any) -> None:
        self.request = request
        self.said = 0

    def wear(self, adapter: Mapping[str, np.ndarray]) -> Talk:
        """Set the states of an adapter."""
        real = isinstance(self.request, ov.InferRequest)
        for state in self.request.query_state():
            if state.name in adapter:
                values = adapter[state.name]
                state.state = ov.Tensor(values) if real else values
        return self

    def tell(self, ids: list[int]) -> np.ndarray:
        """Run tokens; return the last one's logits."""
        total = self.said + len(ids)
        self.request.infer(
            {
                "input_ids": np.array([ids]),
                "attention_mask": np.ones((1, total), np.int64),
                "position_ids": np.arange(self.said, total)[None],
                "beam_idx": np.zeros(1, np.int32),
            }
        )
        self.said = total
        return np.array(self.request.get_tensor("logits").data[0, -1])


def real(path: Path) -> ov.CompiledModel:
    return ov.Core().compile_model(path, "CPU", EXACT)


@pytest.mark.parametrize("name", NAMES)
def test_the_graph_has_openvino_genais_variables(adapt, golden, name) -> None:
    for kind in ("f32", "f16"):
        model = ov.Core().read_model(adapt(name, kind=kind).path)
        found = [
            [info.variable_id, info.data_type.get_type_name(), str(info.data_shape)[1:-1]]
            for info in (variable.info for variable in model.get_variables())
            if info.variable_id.startswith("lora")
        ]
        assert sorted(found) == golden[name]["variables"][kind]


@pytest.mark.parametrize("name", NAMES)
def test_the_graph_on_the_real_cpu_generates_openvino_genais_tokens(
    adapt, load_module, golden, name
) -> None:
    tools = load_module(GOLDENS / "adapters.py")
    for wished, wish in tools.WISHES.items():
        model = adapt(name, kind=wish.kind)
        talk = Talk(real(model.path).create_infer_request()).wear(wish.states(model.adapted))
        expected = golden[name]["tokens"][wished]
        ids, found = golden[name]["prompt"], list[int]()
        while len(found) < len(expected):
            found.append(int(talk.tell(ids).argmax()))
            ids = found[-1:]
        assert found == expected, wished


@pytest.mark.parametrize("name", ["llama_fp16", "llama_int8", "llama_deep_fp16", "phi3_fp16"])
@pytest.mark.parametrize("device", ["NPU", "CPU"])
def test_conversations_with_changing_adapters_agree(adapt, name, device) -> None:
    """Two requests take turns; each changes adapters in the middle of a conversation."""
    model = adapt(name)
    theirs, config = real(model.path), LENGTHS | {"NPUW_DEVICES": device}
    ours = Core().compile_model(model.path, "NPU", config)
    pairs = [
        (Talk(theirs.create_infer_request()), Talk(ours.create_infer_request())) for _ in range(2)
    ]
    draw = np.random.default_rng(len(name))
    for turn, count in enumerate((int(draw.integers(2, 60)), 1, 1, 5, 1, 1)):
        for number, pair in enumerate(pairs):
            if turn % 2 == number or turn == 0:
                rank = int(draw.choice([1, 8, 32]))
                adapter = model.draw(rank, seed=turn + 9 * number) if turn != 3 else model.off
                for talk in pair:
                    talk.wear(adapter)
            ids = draw.integers(0, 1000, count).tolist()
            expected, found = (talk.tell(ids) for talk in pair)
            error = np.abs(found - expected).max() / np.abs(expected).max()
            assert error <= 1e-4, f"turn {turn} of request {number}: {error:.1e}"
