"""A speech recogniser of a server, on OpenVINO's CPU, compared to the real openvino_genai."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from genai_layer.serve.engine.activity import Activity, Commons
from genai_layer.serve.limits import Limits
from genai_layer.serve.metrics import Metrics
from genai_layer.serve.models.registry import ModelRegistry
from genai_layer.serve.models.spec import ModelSpec

GOLDENS = Path(__file__).resolve().parents[2] / "goldens"
SAID = json.loads((GOLDENS / "whisper" / "transcriptions.json").read_text())
OPTIONS = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32", "MAX_PROMPT_LEN": 1024}
"""Options of all models of a server; lengths are those of its language models."""


@pytest.fixture(scope="module")
def spec(whisper_folder: Path) -> ModelSpec:
    return ModelSpec("whisper", "speech", whisper_folder, "CPU", OPTIONS)


def test_transcriptions_are_openvino_genais_for_several_clients(
    spec: ModelSpec, whisper_tools: Any
) -> None:
    async def ask() -> None:
        commons = Commons(Limits(queue=2), Metrics(), Activity())
        model = await ModelRegistry([spec], commons).speech("whisper")
        audio = whisper_tools.speech(4.0)
        left = asyncio.ensure_future(model.transcribe(audio, {}))
        await asyncio.sleep(0.1)
        left.cancel()  # its client leaves
        work = [model.transcribe(audio, parameters(name)) for name in ("plain", "times")]
        plain, times = await asyncio.gather(*work)
        assert plain.texts == [SAID["plain"]["text"]]
        found = [[one.start_ts, one.end_ts, one.text] for one in times.chunks or ()]
        assert found == [pytest.approx(one) for one in SAID["times"]["chunks"]]
        assert not model.times_words
        assert model.idle

    asyncio.run(ask())


def parameters(name: str) -> Mapping[str, Any]:
    return SAID[name]["parameters"]
