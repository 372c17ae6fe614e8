"""Decoders of ONNX Runtime: a static model for prompts and one for tokens, driven by the test."""

from __future__ import annotations

import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import GOLDENS

from npuw_layer import Core
from npuw_layer.errors import OptionError
from npuw_layer.kinds.static.compiled_model import StaticCompiledModel

GQA = GOLDENS / "gqa"
PROMPT = 7
F32 = {"INFERENCE_PRECISION_HINT": "f32"}
WAYS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "through NPUW": {"NPUW_GQA": "YES"},
    "not partitioned": {"NPUW_GQA": "YES", "NPUW_ONLINE_PIPELINE": "NONE"},
    "on OpenVINO": {
        "NPUW_GQA": "YES",
        "NPUW_DEVICES": "OPENVINO_CPU",
        "NPUW_ONLINE_PIPELINE": "NONE",
    },
    "on the interpreter": {"NPUW_GQA": "YES", "NPUW_DEVICES": "CPU"},
}


@pytest.fixture(scope="session")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """Return a function that finds the IR that OpenVINO wrote for a kind and a stage."""
    folder = tmp_path_factory.mktemp("gqa")
    for file in GQA.glob("*.xz"):
        (folder / file.stem).write_bytes(lzma.decompress(file.read_bytes()))
    return lambda kind, stage: folder / f"{kind}_{stage}.xml"


class Decoder:
    """Both models, and the caches passed from one inference to the next."""

    def __init__(self, decoder: Any, kind: str, options: dict[str, Any]) -> None:
        self._requests: dict[int, Any] = {}
        for tokens, stage in ((PROMPT, "prefill"), (1, "generate")):
            compiled = Core().compile_model(decoder(kind, stage), "NPU", F32 | options)
            assert isinstance(compiled, StaticCompiledModel)
            self._requests[tokens] = compiled.create_infer_request()
            caches = [port for port in compiled.inputs if "past" in port.any_name]
        self.caches = {
            port.any_name.removeprefix("past_key_values."): np.zeros(port.shape, np.float32)
            for port in caches
        }
        self.stored = 0

    def tell(self, ids: np.ndarray) -> np.ndarray:
        """Run as many tokens as one of the models takes; return their logits."""
        self.stored += ids.shape[1]
        request = self._requests[ids.shape[1]]
        feeds = {f"past_key_values.{name}": values for name, values in self.caches.items()}
        feeds["input_ids"] = ids
        feeds["seqlens_k"] = np.array([[self.stored - 1]], np.int32)
        feeds["total_sequence_length"] = np.array([self.stored], np.int32)
        request.infer(feeds)
        for name in self.caches:
            self.caches[name] = np.array(request.get_tensor(f"present.{name}").data)
        return np.array(request.get_tensor("logits").data[0])


@pytest.mark.matrix
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["plain", "window"])
def test_logits_equal_openvinos(decoder: Any, kind: str, way: str) -> None:
    said = np.load(GQA / f"{kind}.npz")
    talk, ids = Decoder(decoder, kind, WAYS[way]), said["ids"]
    found = [talk.tell(ids[:, :PROMPT])]
    found += [talk.tell(ids[:, n : n + 1]) for n in range(PROMPT, ids.shape[1])]
    np.testing.assert_allclose(np.concatenate(found), said["logits"], rtol=1e-4, atol=1e-5)
    for name, values in talk.caches.items():
        np.testing.assert_allclose(values, said[name], rtol=1e-4, atol=1e-5)


def test_a_short_prompt_is_aligned_to_the_right(decoder: Any) -> None:
    """Padding before the prompt is stored nowhere."""
    long, short = (Decoder(decoder, "plain", {}) for _ in range(2))
    ids = np.arange(3, 3 + PROMPT)[None]
    long.tell(ids)
    short.stored = -2
    found = short.tell(np.concatenate([[[9, 9]], ids[:, :-2]], 1))[2:]
    again = Decoder(decoder, "plain", {})
    whole = again.tell(ids)
    np.testing.assert_allclose(found, whole[:-2], rtol=1e-4, atol=1e-5)
    for name, values in short.caches.items():
        np.testing.assert_allclose(
            values[:, :, : PROMPT - 2], long.caches[name][:, :, : PROMPT - 2], rtol=1e-4, atol=1e-5
        )
        assert not values[:, :, PROMPT - 2 :].any()


@pytest.mark.parametrize("more", [{"NPU_USE_NPUW": "NO"}, {"NPUW_LLM": "YES"}])
def test_gqa_requires_npuw(decoder: Any, more: dict[str, str]) -> None:
    with pytest.raises(OptionError, match="NPUW_GQA = YES needs NPU_USE_NPUW = YES"):
        Core().compile_model(decoder("plain", "generate"), "NPU", {"NPUW_GQA": "YES"} | more)


def test_the_error_for_an_unsupported_attention_names_it(decoder: Any, tmp_path: Path) -> None:
    text = decoder("plain", "generate").read_text()
    changed = tmp_path / "model.xml"
    changed.with_suffix(".bin").write_bytes(
        decoder("plain", "generate").with_suffix(".bin").read_bytes()
    )
    changed.write_text(text.replace('kv_cache_bit_width="0"', 'kv_cache_bit_width="8"'))
    with pytest.raises(RuntimeError, match=r"present\.0\.value.*with a quantized cache"):
        Core().compile_model(changed, "NPU", {"NPUW_GQA": "YES"})
