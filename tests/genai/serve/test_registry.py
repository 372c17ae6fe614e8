"""Models on demand: loads, bounds of bytes, and kinds."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from tests.genai.serve.conftest import TABLE, Parts, greedy, run, text_of

from genai_layer import ModelError, WhisperGenerationConfig
from genai_layer.serve.engine.contract import Kind
from genai_layer.serve.errors import (
    NeverFits,
    NoRoom,
    ShuttingDown,
    UnknownModel,
    Unusable,
    WrongKind,
)
from genai_layer.serve.models import opening
from genai_layer.serve.models.opening import open_model
from genai_layer.serve.models.spec import ModelSpec
from genai_layer.testing.memory_batching import BatchingCore

Make = Callable[..., Parts]


def test_a_model_is_loaded_once_for_all_who_request_it(parts: Make) -> None:
    async def ask() -> None:
        made = parts("a", "b")
        assert not made.models.ready
        models = await asyncio.gather(*[made.models.text("a") for _ in range(3)])
        assert models[0] is models[1] is models[2]
        assert (made.opened, made.models.ready) == (["a"], True)
        assert [(card.name, card.loaded) for card in made.models.names()] == [
            ("a", True),
            ("b", False),
        ]

    run(ask())


def test_loads_take_place_one_at_a_time_and_go_on_without_their_client(parts: Make) -> None:
    gate, at_once = threading.Event(), [0]

    def opens() -> None:
        at_once.append(at_once[-1] + 1)
        assert gate.wait(10)
        at_once.append(at_once[-1] - 1)

    async def ask() -> None:
        made = parts("a", "b", before=opens)
        left = asyncio.ensure_future(made.models.text("a"))
        other = asyncio.ensure_future(made.models.text("b"))
        while len(at_once) < 2:
            await asyncio.sleep(0.001)
        left.cancel()
        gate.set()
        assert (await other).name == "b"
        assert (max(at_once), made.opened) == (1, ["a", "b"])
        assert made.models.loaded_text("a") is not None

    run(ask())


def test_idle_models_make_room_least_recently_used_first(parts: Make) -> None:
    async def ask() -> None:
        made = parts("a", "b", "c", max_bytes=250)  # each has 100
        unloaded = weakref.ref((await made.models.text("b")).pipeline)
        await made.models.text("a")
        await made.models.text("c")
        assert [card.name for card in made.models.names() if card.loaded] == ["a", "c"]
        gc.collect()
        assert unloaded() is None
        assert made.commons.metrics.text().count(b'npu_model_unloads_total{model_name="b"} 1.0')

    run(ask())


def test_models_in_use_are_not_unloaded(parts: Make) -> None:
    async def ask() -> None:
        made = parts("a", "b", max_bytes=150)
        model = await made.models.text("a")
        config = greedy(4000, ignore_eos=True)
        running = [await model.submit("hello", config, "") for _ in range(8)]  # some wait
        with pytest.raises(NoRoom, match="no room beside a, which are in use") as caught:
            await made.models.text("b")
        assert caught.value.headers["Retry-After"]
        for request in running:
            request.cancel()
        while not model.idle:
            await asyncio.sleep(0.001)
        assert await text_of(await (await made.models.text("b")).submit("hi", greedy(3), ""))

    run(ask())


def test_models_that_cannot_be_loaded_are_rejected(parts: Make) -> None:
    def broken() -> None:
        raise ModelError("model.xml: damaged")

    async def ask() -> None:
        made = parts("a", max_bytes=99)
        with pytest.raises(NeverFits, match="has 100 bytes of weights") as caught:
            await made.models.text("a")
        assert caught.value.status < 500, "clients repeat a request after 500 and more"
        made = parts("a", before=broken)
        for _ in range(2):
            with pytest.raises(Unusable, match=r"model 'a' cannot be loaded: model\.xml: damaged"):
                await made.models.text("a")
        assert Unusable("").headers["x-should-retry"] == "false"
        with pytest.raises(UnknownModel, match="available: a"):
            await made.models.text("z")
        with pytest.raises(WrongKind, match="of kind text, and the endpoint needs rerank"):
            await made.models.rerank("a")
        await made.commons.activity.stop(0)
        with pytest.raises(ShuttingDown):
            await made.models.text("a")

    run(ask())


def test_the_bytes_of_a_model_are_those_of_the_weight_files_that_count(tmp_path: Path) -> None:
    spec = ModelSpec("m", "text", tmp_path)
    for name, size in (("a", 1), ("b", 2), ("model_ema", 4)):
        (tmp_path / f"{name}.safetensors").write_bytes(bytes(size))
    index = {"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert spec.bytes == 3
    for broken in ("{", json.dumps({"weight_map": {"x": "a" * 999}})):
        (tmp_path / "model.safetensors.index.json").write_text(broken)
        assert spec.bytes == 0, "the runtime names the problem"
    (tmp_path / "model.safetensors").write_bytes(bytes(8))
    assert spec.bytes == 8
    (tmp_path / "openvino_model.bin").write_bytes(bytes(16))
    (tmp_path / "openvino_tokenizer.bin").write_bytes(bytes(32))
    assert spec.bytes == 24


TEXTS = {"CACHE_DIR", "MAX_PROMPT_LEN", "NPUW_LLM_PREFILL_CHUNK_SIZE", "normalize"}


@pytest.mark.parametrize(
    ("kind", "pipeline", "names"),
    [
        ("embedding", "TextEmbeddingPipeline", TEXTS),
        ("rerank", "TextRerankPipeline", TEXTS),
        ("speech", "WhisperPipeline", {"CACHE_DIR", "word_timestamps"}),
    ],
)
def test_each_kind_of_models_gets_the_properties_that_it_has(
    monkeypatch: pytest.MonkeyPatch, kind: Kind, pipeline: str, names: set[str]
) -> None:
    """Options are those of all models of a server; lengths are no recogniser's."""
    given = {
        **{"CACHE_DIR": "c", "MAX_PROMPT_LEN": 1024, "NPUW_LLM_PREFILL_CHUNK_SIZE": 32},
        **{"normalize": False, "word_timestamps": True},
    }
    opens = MagicMock()
    monkeypatch.setattr(opening, pipeline, opens)
    open_model(ModelSpec("a", kind, Path(), "CPU", given), BatchingCore(TABLE))
    assert opens.call_args.kwargs.keys() - {"core"} == names


def test_a_recogniser_of_several_languages_needs_their_tokens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opens = MagicMock()
    opens.return_value.get_generation_config.return_value = WhisperGenerationConfig()
    monkeypatch.setattr(opening, "WhisperPipeline", opens)
    with pytest.raises(ModelError, match=r"speech/generation_config\.json: has no lang_to_id"):
        open_model(ModelSpec("a", "speech", Path("speech"), "CPU"), BatchingCore(TABLE))
