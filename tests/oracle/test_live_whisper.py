"""A Whisper decoder compared to the real OpenVINO, live: its CPU plugin, and its NPUW.

The real NPUW always keeps caches in f16 (others give wrong results), so it agrees less with its own
CPU plugin than this stack does.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import openvino.opset13 as op
import pytest
from tests.oracle.real_npuw import EXACT

from npuw_layer import Core

pytestmark = pytest.mark.oracle

GOLDENS = Path(__file__).resolve().parent.parent / "goldens"
FRAMES, CHANNELS, BEGIN, EOS, WIDTH = 50, 32, 257, 256, 16
WHISPER = {"NPUW_WHISPER": "YES", "NPUW_WHISPER_EOS_TOKEN": EOS}
NPUW = WHISPER | {
    "NPU_USE_NPUW": "YES",
    "NPUW_LLM": "YES",
    "NPUW_DEVICES": "CPU",
    "NPUW_ONLINE_PIPELINE": "NONE",
    "NPUW_FUNCALL_FOR_ALL": "NO",
    "NPUW_FOLD": "NO",
    "NPUW_LLM_PREFILL_HINT": "STATIC",
    "NPUW_F16IC": "NO",
    "NPUW_DCOFF_TYPE": "",
    "NPUW_DCOFF_SCALE": "NO",
    "NPUW_DQ": "NO",
    "INFERENCE_PRECISION_HINT": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
}
"""Options of openvino_genai for the decoder, in f32 as far as possible."""


@pytest.fixture(scope="module", params=["fp16", "int8"])
def decoder(
    load_module: Callable[[Path], Any],
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Path:
    restore = load_module(GOLDENS / "exported" / "restore.py").restore
    name = f"decoder_{request.param}"
    return restore(GOLDENS / "whisper", name, tmp_path_factory.mktemp(name))


def audio(seed: int) -> np.ndarray:
    random = np.random.RandomState(seed)
    return random.standard_normal((1, FRAMES, CHANNELS)).astype(np.float32)


def ours(decoder: Path, **more: object) -> Any:
    """Create a request of this stack."""
    config = WHISPER | {"INFERENCE_PRECISION_HINT": "f32", "NPUW_WHISPER_ENCODER_LEN": FRAMES}
    return Core().compile_model(decoder, "NPU", config | more).create_infer_request()


def theirs(decoder: Path) -> Any:
    return ov.Core().compile_model(decoder, "CPU", EXACT).create_infer_request()


def npuw(decoder: Path, **more: object) -> Any:
    core = ov.Core()
    model = core.read_model(decoder)
    model.reshape({"encoder_hidden_states": ov.PartialShape([-1, FRAMES, CHANNELS])})
    return core.compile_model(model, "NPU", NPUW | more).create_infer_request()


def infer(request: Any, tokens: list[int], heard: np.ndarray) -> np.ndarray:
    """Return logits [n, V] of a request of either implementation."""
    inputs = {"input_ids": np.array([tokens]), "encoder_hidden_states": heard}
    request.infer(inputs | {"beam_idx": np.zeros(1, np.int32)})
    return np.array(request.get_tensor("logits").data[0])


@pytest.mark.parametrize("prompt", [1, 3, 4])
def test_logits_of_two_audios_equal_openvinos(decoder: Path, prompt: int) -> None:
    mine, real = ours(decoder), theirs(decoder)
    ids = [BEGIN, *np.random.RandomState(prompt).randint(0, EOS, 40).tolist()]
    for seed in (1, 2):
        mine.reset_state()
        real.reset_state()
        for part in (ids[:prompt], *([token] for token in ids[prompt:])):
            found, expected = (infer(each, part, audio(seed)) for each in (mine, real))
            np.testing.assert_allclose(found, expected, atol=2e-4)


def test_logits_equal_the_real_npuws(decoder: Path) -> None:
    mine, real = ours(decoder), npuw(decoder)
    ids = [BEGIN, *np.random.RandomState(5).randint(0, EOS, 20).tolist()]
    for seed in (1, 2):
        prompts = [infer(each, ids[:3], audio(seed)) for each in (mine, real)]
        np.testing.assert_allclose(*prompts, atol=2e-4)
        for token in ids[3:]:
            found, expected = (infer(each, [token], audio(seed)) for each in (mine, real))
            np.testing.assert_allclose(found, expected, atol=2e-2)


def test_the_last_position_ends_a_text_as_in_the_real_npuw(decoder: Path) -> None:
    ended = []
    for each in (ours(decoder), npuw(decoder)):
        infer(each, [BEGIN, 1, 2], audio(1))
        forced = [infer(each, [3], audio(1))[-1, EOS] == np.inf for _ in range(445)]
        ended.append(forced)
        with pytest.raises(RuntimeError, match="KV-Cache is full"):
            infer(each, [3], audio(1))
    assert ended[0] == ended[1] == [False] * 444 + [True]


def test_cross_attention_scores_equal_openvinos(decoder: Path) -> None:
    """OpenVINO's scores are Q Kᵀ of its attention inputs; ours NPUW_WHISPER_DECOMPOSE_SDPA's."""
    mine = ours(decoder, NPUW_WHISPER_DECOMPOSE_SDPA="YES")
    tokens = [BEGIN, *range(20)]
    logits = infer(mine, tokens, audio(1))
    core = ov.Core()
    model = core.read_model(decoder)
    cross = [
        node
        for node in model.get_ordered_ops()
        if node.get_type_name() == "ScaledDotProductAttention"
        and node.input_value(1).get_node().get_type_name() == "ReadValue"
    ]
    for layer, node in enumerate(cross):
        scores = op.matmul(node.input_value(0), node.input_value(1), False, True)
        scores.output(0).set_names({f"cross_attention_qk_scaled_scores_{layer}"})
        model.add_results([op.result(scores)])
    real = core.compile_model(model, "CPU", EXACT).create_infer_request()
    np.testing.assert_allclose(logits, infer(real, tokens, audio(1)), atol=2e-4)
    real_npuw = npuw(decoder, NPUW_WHISPER_DECOMPOSE_SDPA="YES")
    infer(real_npuw, tokens, audio(1))
    for layer in range(2):
        name = f"cross_attention_qk_scaled_scores_{layer}"
        found = mine.get_tensor(name).data
        assert found.shape == (1, 2, len(tokens), FRAMES)
        np.testing.assert_allclose(found, real.get_tensor(name).data, atol=2e-4)
        padded = np.array(real_npuw.get_tensor(name).data)
        np.testing.assert_allclose(found, padded[:, :, : len(tokens)], atol=2e-4)
