"""Embedding and reranking pipelines on the NPU, compared to the real openvino_genai on its CPU."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from genai_layer import (
    ConfigError,
    ModelError,
    PromptError,
    TextEmbeddingPipeline,
    TextRerankPipeline,
    Tokenizer,
)
from genai_layer.errors import PromptTooLong
from genai_layer.texts.compiled import TextEncoder

GOLDENS = Path(__file__).resolve().parent.parent / "goldens"
SAID = json.loads((GOLDENS / "rag" / "said.json").read_text())
QUERY, DOCUMENTS = SAID["query"], SAID["documents"]
SENTENCES = json.loads((GOLDENS / "sentences" / "vectors.json").read_text())
EXACT = {"INFERENCE_PRECISION_HINT": "f32", "MAX_PROMPT_LEN": 128}
LENGTHS = {"NPUW_LLM_PREFILL_CHUNK_SIZE": 32}
CLOSE = {"rtol": 1e-3, "atol": 1e-4}


@pytest.fixture(scope="module")
def folder(load_module: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a function that creates a model's folder, as the exporter writes it."""
    restore = load_module(GOLDENS / "exported" / "restore.py").restore
    known: dict[str, Path] = {}

    def give(name: str, source: str = "texts") -> Path:
        if name not in known:
            target = tmp_path_factory.mktemp(name)
            restore(GOLDENS / source, name, target)
            kind = "decoder" if name.startswith("qwen3") else "encoder"
            shutil.copy(GOLDENS / "rag" / f"{kind}.json", target / "tokenizer.json")
            settings = {"pad_token": "[PAD]"}
            (target / "tokenizer_config.json").write_text(json.dumps(settings))
            model_type = "qwen3" if name.startswith("qwen3") else name
            (target / "config.json").write_text(json.dumps({"model_type": model_type}))
            known[name] = target
        return known[name]

    return give


def embedding_config(given: dict[str, Any]) -> Any:
    kinds = TextEmbeddingPipeline.PoolingType
    kind = kinds[given.get("pooling_type", "CLS")]
    return TextEmbeddingPipeline.Config(**{**given, "pooling_type": kind})


def npu_options(config: dict[str, Any]) -> dict[str, Any]:
    length = {} if "max_length" in config else {"MAX_PROMPT_LEN": 128}
    return {"INFERENCE_PRECISION_HINT": "f32", **LENGTHS, **length}


@pytest.mark.matrix
@pytest.mark.parametrize("name", SAID["embeddings"])
def test_embeddings_are_openvino_genais(folder: Any, name: str) -> None:
    case = SAID["embeddings"][name]
    config = embedding_config(case["config"])
    pipe = TextEmbeddingPipeline(
        folder(case["model"]), "NPU", config, **npu_options(case["config"])
    )
    np.testing.assert_allclose(pipe.embed_documents(DOCUMENTS), case["documents"], **CLOSE)
    if "query" in case:
        np.testing.assert_allclose(pipe.embed_query(QUERY), case["query"], **CLOSE)


@pytest.mark.matrix
@pytest.mark.parametrize("name", SENTENCES)
def test_embeddings_by_files_are_those_of_sentence_transformers(
    folder: Any, tmp_path: Path, name: str
) -> None:
    shutil.copytree(folder("bert"), tmp_path, dirs_exist_ok=True)
    for file, content in SENTENCES[name]["files"].items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(json.dumps(content))
    pipe = TextEmbeddingPipeline(tmp_path, "NPU", **EXACT)
    np.testing.assert_allclose(
        pipe.embed_documents(DOCUMENTS), SENTENCES[name]["documents"], **CLOSE
    )
    np.testing.assert_allclose(pipe.embed_query(QUERY), SENTENCES[name]["query"], **CLOSE)


@pytest.mark.matrix
@pytest.mark.parametrize("name", SAID["ranks"])
def test_ranks_are_openvino_genais(folder: Any, name: str) -> None:
    case = SAID["ranks"][name]
    options = npu_options(case["config"])
    if name == "qwen3_score":
        options["NPUW_DEVICES"] = "NPU,CPU"  # the NPU has no ops to find the last token
    pipe = TextRerankPipeline(
        folder(case["model"], case["folder"]), "NPU", **case["config"], **options
    )
    found = pipe.rerank(query=QUERY, texts=DOCUMENTS)
    assert [index for index, _ in found] == [index for index, _ in case["said"]]
    scores = [[score for _, score in each] for each in (found, case["said"])]
    np.testing.assert_allclose(*scores, rtol=1e-3, atol=1e-4)


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["bert_mean", "qwen3_left"])
def test_embeddings_on_openvino_are_openvino_genais(folder: Any, name: str) -> None:
    case = SAID["embeddings"][name]
    config = embedding_config(case["config"])
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    pipe = TextEmbeddingPipeline(folder(case["model"]), "CPU", config, **exact)
    np.testing.assert_allclose(pipe.embed_documents(DOCUMENTS), case["documents"], **CLOSE)


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["xlmr", "qwen3"])
def test_ranks_on_openvino_are_openvino_genais(folder: Any, name: str) -> None:
    case = SAID["ranks"][name]
    exact = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}
    pipe = TextRerankPipeline(
        folder(case["model"], case["folder"]), "CPU", **case["config"], **exact
    )
    found = pipe.rerank(QUERY, DOCUMENTS)
    assert [index for index, _ in found] == [index for index, _ in case["said"]]


def test_a_prompt_precedes_texts_instead_of_the_instruction(folder: Any) -> None:
    case = SAID["embeddings"]["qwen3_told"]
    config = embedding_config({**case["config"], "embed_instruction": "other "})
    pipe = TextEmbeddingPipeline(
        folder(case["model"]), "NPU", config, **npu_options(case["config"])
    )
    found = pipe.embed(texts=DOCUMENTS, prompt=case["config"]["embed_instruction"])
    np.testing.assert_allclose(found, case["documents"], **CLOSE)


def test_texts_are_embedded_asynchronously(folder: Any) -> None:
    pipe = TextEmbeddingPipeline(folder("bert"), "NPU", **EXACT)
    expected = pipe.embed_documents(DOCUMENTS[:2])
    pipe.start_embed_documents_async(DOCUMENTS[:2])
    assert pipe.wait_embed_documents() == expected
    assert np.linalg.norm(expected, axis=1) == pytest.approx(1, abs=1e-5)


def test_unreadable_texts_and_invalid_parameters_are_rejected(folder: Any) -> None:
    pipe = TextEmbeddingPipeline(folder("bert"), "NPU", batch_size=2, **EXACT)
    with pytest.raises(PromptError, match="batch_size = 2: the call has 4 texts"):
        pipe.embed_documents(DOCUMENTS)
    with pytest.raises(PromptTooLong, match="MAX_PROMPT_LEN=128: a text has"):
        pipe.embed_documents(["text " * 200, "short"])
    for wrong, message in (
        ({"max_length": 0}, "max_length = 0"),
        ({"batch_size": 0}, "batch_size = 0"),
        ({"padding_side": "middle"}, "padding_side"),
        ({"pad_to_max_length": True}, "max_length is not set"),
    ):
        with pytest.raises(ConfigError, match=message):
            TextEmbeddingPipeline(folder("bert"), "NPU", **wrong)
    with pytest.raises(ConfigError, match="unknown parameter 'top'; did you mean top_n"):
        TextRerankPipeline.Config(top=3)


@pytest.mark.parametrize(
    ("pipeline", "name", "message"),
    [
        (TextEmbeddingPipeline, "xlmr", "has no output last_hidden_state; .* --task feature-"),
        (TextRerankPipeline, "bert", "has no output logits; .* --task text-classification"),
    ],
)
def test_a_model_of_another_task_is_rejected(
    folder: Any, pipeline: Any, name: str, message: str
) -> None:
    with pytest.raises(ModelError, match=message):
        pipeline(folder(name), "NPU", **EXACT)


def test_texts_are_padded_to_the_length_of_the_tokenizer(folder: Any, tmp_path: Path) -> None:
    shutil.copy(folder("bert") / "tokenizer.json", tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 20}))
    config = TextEmbeddingPipeline.Config(pad_to_max_length=True)
    encoder = TextEncoder(Tokenizer(tmp_path), config)
    assert encoder.encode(["text"]).ids.shape == (1, 20)


def test_lengths_are_checked_when_parameters_are_validated() -> None:
    config = TextEmbeddingPipeline.Config(max_length=0)
    config.batch_size = np.int64(2)
    with pytest.raises(ConfigError, match="max_length = 0: must be at least 1"):
        config.validate()
    config.max_length = None
    config.validate()
    assert config == TextEmbeddingPipeline.Config(batch_size=2)
