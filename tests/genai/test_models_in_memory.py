"""Pipelines and tokenizers of models in memory; the forms are openvino_genai 2026.4.1.0's."""

from __future__ import annotations

import json
import lzma
from base64 import b64decode
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from genai_layer import GenerationConfig, LLMPipeline, ModelError, PropertyError, Tensor, Tokenizer
from genai_layer.adapters.openvino import load_core
from genai_layer.testing.toy import EOS, answering_core

GOLDENS = Path(__file__).resolve().parents[1] / "goldens" / "tokenizers"
WEIGHTS = Tensor(np.zeros(8, np.uint8))


@pytest.fixture(scope="module")
def models() -> list[Any]:
    """Texts and weights of a tokenizer and a detokenizer."""
    files = json.loads(lzma.decompress((GOLDENS / "qwen2.json.xz").read_bytes()))["files"]
    found: list[Any] = []
    for name in ("tokenizer", "detokenizer"):
        found.append(b64decode(files[f"openvino_{name}.xml"]).decode())
        weights = b64decode(files[f"openvino_{name}.bin"])
        found.append(Tensor(np.frombuffer(weights, np.uint8)))
    return found


def test_a_tokenizer_of_models_equals_that_of_their_folder(models: Any, tmp_path: Path) -> None:
    for name, (text, weights) in zip(
        ("tokenizer", "detokenizer"), (models[:2], models[2:]), strict=True
    ):
        (tmp_path / f"openvino_{name}.xml").write_text(text)
        (tmp_path / f"openvino_{name}.bin").write_bytes(weights.data.tobytes())
    folder = Tokenizer(tmp_path)
    names = ("tokenizer_model", "tokenizer_weights", "detokenizer_model", "detokenizer_weights")
    for made in (Tokenizer(*models), Tokenizer(**dict(zip(names, models, strict=True)))):
        assert made.get_vocab() == folder.get_vocab()
        assert made.get_eos_token_id() == folder.get_eos_token_id() >= 0
        assert made.get_pad_token() == folder.get_pad_token()
        assert made.chat_template == folder.chat_template
        ids = made.encode("Hello, world!").input_ids
        assert np.array_equal(ids.data, folder.encode("Hello, world!").input_ids.data)
        assert made.decode(ids) == ["Hello, world!"]


def test_wrong_tokenizer_models_are_rejected(models: Any) -> None:
    with pytest.raises(TypeError, match="detokenizer_weights"):
        Tokenizer(*models[:3])
    with pytest.raises(ModelError, match=r"openvino_detokenizer\.xml: is not an OpenVINO IR"):
        Tokenizer(*models[:2], "<net", models[3])
    with pytest.raises(PropertyError, match="'padding'"):
        Tokenizer(*models, padding=1)


@pytest.mark.parametrize(
    "form",
    [
        lambda tokenizer, core: LLMPipeline("<net/>", WEIGHTS, tokenizer, "NPU", core=core),
        lambda tokenizer, core: LLMPipeline(
            model="<net/>", weights=WEIGHTS, tokenizer=tokenizer, device="NPU", core=core
        ),
        lambda tokenizer, core: LLMPipeline(
            "<net/>", WEIGHTS, tokenizer, "NPU", None, core=core, MAX_PROMPT_LEN=64
        ),
    ],
)
def test_a_pipeline_of_a_model_in_memory_generates(folder: Path, form: Any) -> None:
    core = answering_core("hey")
    pipe = form(Tokenizer(folder), core)
    assert pipe.generate("?") == "hey"
    assert pipe.get_generation_config().eos_token_id == EOS, "the tokenizer's"
    assert core.config["NPUW_LLM_MAX_PROMPT_LEN"] in (64, 1024), "the device is NPU"


def test_the_given_parameters_are_the_default_and_stay_unchanged(folder: Path) -> None:
    given = GenerationConfig(max_new_tokens=2)
    core = answering_core("hey")
    pipe = LLMPipeline("<net/>", WEIGHTS, Tokenizer(folder), "CPU", given, core=core)
    assert pipe.generate("?") == "he"
    assert given.eos_token_id == -1


def test_a_model_in_memory_needs_a_tokenizer_and_a_device(folder: Path) -> None:
    core = answering_core("hey")
    with pytest.raises(TypeError, match=r"tokenizer = .*: pass a Tokenizer"):
        LLMPipeline("<net/>", WEIGHTS, str(folder), "CPU", core=core)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="'device'"):
        LLMPipeline("<net/>", WEIGHTS, Tokenizer(folder), core=core)  # type: ignore[call-overload]


def test_the_real_openvino_compiles_a_model_in_memory(llama_8m_ir: Path) -> None:
    core = load_core()
    text = llama_8m_ir.read_text()
    weights = Tensor(np.fromfile(llama_8m_ir.with_suffix(".bin"), np.uint8))
    assert core.compile_model(core.read_model(text, weights), "CPU", {}).create_infer_request()
    with pytest.raises(RuntimeError):
        core.read_model("<net", weights)
