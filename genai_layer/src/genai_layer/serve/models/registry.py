"""Loaded models: loads on demand, one at a time, within a bound of bytes."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from genai_layer.errors import GenAIError
from genai_layer.serve.engine.activity import Commons
from genai_layer.serve.engine.contract import Kind, ModelCard
from genai_layer.serve.engine.speech import ServedSpeechModel
from genai_layer.serve.engine.text_model import ServedTextModel
from genai_layer.serve.engine.text_tasks import ServedEmbeddingModel, ServedRerankModel
from genai_layer.serve.errors import (
    NeverFits,
    NoRoom,
    QueueFull,
    UnknownModel,
    Unusable,
    WrongKind,
)
from genai_layer.serve.models.opening import Finish, ServedModel, open_model
from genai_layer.serve.models.spec import ModelSpec

T = TypeVar("T")

_log = logging.getLogger(__name__)
_BUSY_SECONDS = "5"
"""Retry-After of a request for a model that waits for room."""


class ModelRegistry:
    """Models of the server, which are loaded on demand. Used in the event loop's thread.

    Its methods raise UnknownModel, WrongKind, NeverFits, NoRoom, Unusable and ShuttingDown.

    Args:
        specs: the models, of different names.
        commons: parts of the server that all models share.
        max_bytes: upper bound of the weights of loaded models; None for no bound.
        opens: opens a model, in a thread of its own.
    """

    def __init__(
        self,
        specs: Sequence[ModelSpec],
        commons: Commons,
        max_bytes: int | None = None,
        opens: Callable[[ModelSpec], Finish] = open_model,
    ) -> None:
        self._specs = {spec.name: spec for spec in specs}
        self._commons = commons
        self._max_bytes = max_bytes
        self._opens = opens
        self._loaded: dict[str, ServedModel] = {}
        """Loaded models, least recently used first."""
        self._loads: dict[str, asyncio.Task[ServedModel]] = {}
        """Loads in progress."""
        self._one_load = asyncio.Lock()
        self._waiting = 0
        """Requests that wait for a load."""

    @property
    def ready(self) -> bool:
        """True if a model is loaded, and the server is not shutting down."""
        return bool(self._loaded) and not self._commons.activity.stopping

    @property
    def loaded(self) -> Sequence[ServedModel]:
        """Loaded models."""
        return list(self._loaded.values())

    def names(self) -> Sequence[ModelCard]:
        """Return the models, in the order of the command line."""
        return [self._card(spec) for spec in self._specs.values()]

    def _card(self, spec: ModelSpec) -> ModelCard:
        model = self._loaded.get(spec.name)
        length = model.max_model_len if isinstance(model, ServedTextModel) else None
        return ModelCard(spec.name, spec.kind, spec.created, model is not None, length)

    def loaded_text(self, name: str) -> ServedTextModel | None:
        """Return a language model if it is loaded; this does not count as a use.

        Raises:
            UnknownModel: there is no model of this name.
            WrongKind: the model is of another kind.
        """
        self._spec(name, "text")
        model = self._loaded.get(name)
        assert model is None or isinstance(model, ServedTextModel)  # of this kind
        return model

    def loads_text(self, name: str) -> bool:
        """Return whether a language model is being loaded, and the server is not shutting down.

        Raises:
            UnknownModel, WrongKind: see ``loaded_text``.
        """
        self._spec(name, "text")
        return name in self._loads and not self._commons.activity.stopping

    async def text(self, name: str) -> ServedTextModel:
        """Return a language model."""
        return await self._get(name, "text", ServedTextModel)

    async def embedding(self, name: str) -> ServedEmbeddingModel:
        """Return a text embedding model."""
        return await self._get(name, "embedding", ServedEmbeddingModel)

    async def rerank(self, name: str) -> ServedRerankModel:
        """Return a reranker."""
        return await self._get(name, "rerank", ServedRerankModel)

    async def speech(self, name: str) -> ServedSpeechModel:
        """Return a speech recogniser."""
        return await self._get(name, "speech", ServedSpeechModel)

    def _spec(self, name: str, kind: Kind) -> ModelSpec:
        spec = self._specs.get(name)
        if spec is None:
            known = ", ".join(self._specs)
            raise UnknownModel(f"model {name!r}: unknown; available: {known}", param="model")
        if spec.kind != kind:
            raise WrongKind(
                f"model {name!r}: of kind {spec.kind}, and the endpoint needs {kind}; request "
                "another model",
                param="model",
            )
        return spec

    async def preload(self, name: str) -> None:
        """Load a model before any request needs it.

        Raises:
            NeverFits, Unusable: it cannot be loaded.
        """
        await self._begin_load(self._specs[name])

    async def _get(self, name: str, kind: Kind, of_kind: type[T]) -> T:
        """Return a model, which is loaded first if needed."""
        spec = self._spec(name, kind)
        self._commons.activity.check()
        model = self._loaded.pop(name, None)
        if model is None:
            model = await self._wait_for_load(spec)
        else:
            self._loaded[name] = model  # now the most recently used
        assert isinstance(model, of_kind)
        return model

    async def _wait_for_load(self, spec: ModelSpec) -> ServedModel:
        limits = self._commons.limits
        if self._waiting >= limits.queue:
            raise QueueFull(
                f"{spec.name}: {self._waiting} requests wait for a model to be loaded, as many as "
                f"the queue holds; try again in {_BUSY_SECONDS} s",
                headers={"Retry-After": _BUSY_SECONDS},
            )
        self._waiting += 1
        try:
            return await self._commons.activity.wait(self._begin_load(spec), limits.timeout)
        finally:
            self._waiting -= 1

    def _begin_load(self, spec: ModelSpec) -> asyncio.Task[ServedModel]:
        """Return the load of a model: one in progress, or a new one."""
        load = self._loads.get(spec.name)
        if load is None:
            load = self._loads[spec.name] = asyncio.ensure_future(self._load(spec))
            load.add_done_callback(lambda _: self._loads.pop(spec.name))
        return load

    async def _load(self, spec: ModelSpec) -> ServedModel:
        """Load a model, one at a time.

        Raises:
            NeverFits: the model has more weights than the server may load.
            NoRoom: the models in use leave no room.
            Unusable: the model cannot be loaded.
        """
        async with self._one_load:
            self._commons.activity.check()
            self._make_room(spec)
            try:
                finish = await _in_thread(partial(self._open, spec))
            except (GenAIError, OSError) as error:
                _log.info("model %s cannot be loaded: %s", spec.name, error)
                raise Unusable(f"model {spec.name!r} cannot be loaded: {error}") from error
            model = self._loaded[spec.name] = finish(self._commons)
            metrics = self._commons.metrics
            metrics.loads.labels(spec.name).inc()
            metrics.loaded_bytes.labels(spec.name).set(spec.bytes)
            return model

    def _open(self, spec: ModelSpec) -> Finish:
        gc.collect()  # frees unloaded models first
        return self._opens(spec)

    def _make_room(self, spec: ModelSpec) -> None:
        """Unload idle models until another one fits, the least recently used first."""
        most, needed = self._max_bytes, spec.bytes
        if most is None:
            return
        if needed > most:
            raise NeverFits(
                f"model {spec.name!r}: has {needed} bytes of weights, and the server may load "
                f"{most}; raise --max-bytes",
                param="model",
            )
        for name, model in list(self._loaded.items()):
            if needed + self._bytes_loaded() <= most:
                return
            if model.idle:
                self._unload(name)
        if needed + self._bytes_loaded() > most:
            busy = ", ".join(self._loaded)
            raise NoRoom(
                f"model {spec.name!r}: no room beside {busy}, which are in use; try again later, "
                "or raise --max-bytes",
                headers={"Retry-After": _BUSY_SECONDS},
            )

    def _bytes_loaded(self) -> int:
        return sum(self._specs[name].bytes for name in self._loaded)

    def _unload(self, name: str) -> None:
        """Forget a model; its memory is free once no request refers to it."""
        del self._loaded[name]
        metrics = self._commons.metrics
        metrics.unloads.labels(name).inc()
        metrics.loaded_bytes.labels(name).set(0)


async def _in_thread(work: Callable[[], T]) -> T:
    """Return the result of work in a thread that does not keep the process alive."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        try:
            value = work()
        except BaseException as error:  # raised in the event loop
            settle = partial(result.set_exception, error)
        else:
            settle = partial(result.set_result, value)
        with contextlib.suppress(RuntimeError):  # the loop is closed: the server has ended
            loop.call_soon_threadsafe(lambda: result.done() or settle())

    threading.Thread(target=run, name="npu-serve load", daemon=True).start()
    return await result
