"""Embedding models and rerankers of a server, on the simulated NPU."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from genai_layer.serve.engine.activity import Activity, Commons
from genai_layer.serve.errors import QueueFull, TimedOut, TooLong
from genai_layer.serve.limits import Limits
from genai_layer.serve.metrics import Metrics
from genai_layer.serve.models.registry import ModelRegistry
from genai_layer.serve.models.spec import ModelSpec

GOLDENS = Path(__file__).resolve().parents[2] / "goldens"
SAID = json.loads((GOLDENS / "rag" / "said.json").read_text())
OPTIONS = {"INFERENCE_PRECISION_HINT": "f32", "MAX_PROMPT_LEN": 64}
CLOSE = {"rtol": 1e-3, "atol": 1e-4}


@pytest.fixture(scope="module")
def specs(
    load_module: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory
) -> list[ModelSpec]:
    restore = load_module(GOLDENS / "exported" / "restore.py").restore
    found: list[ModelSpec] = []
    for name, kind in (("bert", "embedding"), ("xlmr", "rerank")):
        case = SAID["ranks"].get(name, {})
        folder = tmp_path_factory.mktemp(name)
        restore(GOLDENS / case.get("folder", "texts"), name, folder)
        shutil.copy(GOLDENS / "rag" / "encoder.json", folder / "tokenizer.json")
        (folder / "tokenizer_config.json").write_text('{"pad_token": "[PAD]"}')
        (folder / "config.json").write_text(json.dumps({"model_type": name}))
        found.append(ModelSpec(name, kind, folder, "NPU", OPTIONS))
    return found


def models(specs: list[ModelSpec], **limits: Any) -> ModelRegistry:
    return ModelRegistry(specs, Commons(Limits(**limits), Metrics(), Activity()))


def test_results_are_openvino_genais_for_several_clients(specs: list[ModelSpec]) -> None:
    async def ask() -> None:
        served = models(specs)
        embedding, rerank = await served.embedding("bert"), await served.rerank("xlmr")
        results = await asyncio.gather(
            *[embedding.embed(SAID["documents"]) for _ in range(3)],
            rerank.rerank(SAID["query"], SAID["documents"]),
        )
        for found in results[:3]:
            expected = SAID["embeddings"]["bert_cls"]["documents"]
            np.testing.assert_allclose(found.vectors, expected, **CLOSE)
            assert found.prompt_tokens == results[0].prompt_tokens > len(SAID["documents"])
        expected = SAID["ranks"]["xlmr"]["said"]
        assert [index for index, _ in results[3].scores] == [index for index, _ in expected]
        np.testing.assert_allclose(results[3].scores, expected, **CLOSE)
        assert embedding.idle
        assert rerank.idle

    asyncio.run(ask())


def test_limits_are_those_of_other_models(specs: list[ModelSpec]) -> None:
    async def ask() -> None:
        served = models(specs, queue=1)
        embedding = await served.embedding("bert")
        with pytest.raises(TooLong, match="MAX_PROMPT_LEN=64: a text has"):
            await embedding.embed(["text " * 200])
        many = [asyncio.ensure_future(embedding.embed(["text"] * 200)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(QueueFull, match="bert: 1 requests wait"):
            await embedding.embed(["text"])
        for one in many:
            one.cancel()  # the work ends after the current text
        while not embedding.idle:
            await asyncio.sleep(0.001)
        assert len((await embedding.embed(["text"])).vectors) == 1

    asyncio.run(ask())


def test_a_time_limit_ends_the_work(specs: list[ModelSpec]) -> None:
    async def ask() -> None:
        served = models(specs, timeout=0.01)
        await served.preload("bert")
        embedding = await served.embedding("bert")
        with pytest.raises(TimedOut):
            await embedding.embed(["text"] * 200)
        while not embedding.idle:
            await asyncio.sleep(0.001)

    asyncio.run(ask())
