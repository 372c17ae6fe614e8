"""All static models of one LLM, compiled or taken from the cache."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from npuw_layer.blob_cache import BlobCache, cache_key, drop_pages
from npuw_layer.errors import ModelError, NotFolded
from npuw_layer.llm.lengths import Lengths
from npuw_layer.llm.stages import Stage, plan, plan_stages
from npuw_layer.model_digest import digest_model
from npuw_layer.options import Options
from npuw_layer.ports import Device, LoadedModel
from npuw_layer.weights_bank import WeightsBank

if TYPE_CHECKING:
    from compiler_layer.model import Model

_log = logging.getLogger(__name__)

CACHE_FORMAT = "3"
"""Changes whenever a split model gives another graph; part of the cache's key."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the programs came from."""

    compiled: int
    cached: int
    seconds: float

    def __str__(self) -> str:
        parts = [
            f"{count} {what}"
            for count, what in ((self.compiled, "compiled"), (self.cached, "loaded from cache"))
            if count
        ]
        return f"{', '.join(parts)} in {self.seconds:.2f} s"


@dataclass(frozen=True, slots=True)
class CompiledLLM:
    """The loaded programs of an LLM and its weights; conversations change nothing here."""

    device: Device
    lengths: Lengths
    capacities: tuple[int, ...]
    prefill: LoadedModel
    generate: tuple[LoadedModel, ...]
    bank: WeightsBank
    origin: Origin
    slots: Mapping[int, tuple[LoadedModel, ...]] = field(
        default_factory=dict[int, tuple[LoadedModel, ...]]
    )
    """The generate models for so many conversations at once, one for each capacity."""


class _Source:
    """The stateful graph, read when it is first needed, and as small as it can be folded."""

    def __init__(self, path: Path, device: Device, options: Options) -> None:
        self._path = path
        self._device = device
        self._options = options
        self._smallest: Model | None = None

    def compile(self, stage: Stage) -> bytes:
        """Split and compile what a stage needs."""
        # Imported here and below: a warm start, which compiles nothing, loads no graphs.
        from npuw_layer.llm.split import split
        from npuw_layer.llm.split_slots import split_slots

        while True:
            model = self._smallest or self._next()
            kv_precision = self._options.kv_cache_precision
            try:
                if stage.slots == 1:
                    graph = split(model, stage.tokens, stage.past, kv_precision)
                else:
                    graph = split_slots(model, stage.slots, stage.past, kv_precision)
                return self._device.compile(graph, self._options.compiler_config())
            except NotFolded as error:
                _log.info("%s; with more layers", error)
                self._smallest = None
            except ModelError as error:
                if stage.slots == 1:
                    raise
                raise ModelError(
                    f"for {stage.slots} conversations at once: {error}; "
                    "with NPUW_LLM_BATCH_SLOTS = 1 they take turns"
                ) from error

    def _next(self) -> Model:
        """The next larger graph; the last is that of all layers, which is not folded."""
        self._smallest = next(self._foldings)
        return self._smallest

    @cached_property
    def _foldings(self) -> Iterator[Model]:
        from npuw_layer.read_model import read_model

        model = read_model(self._path)
        return self._device.foldings(model) if self._options.fold else iter([model])

    @cached_property
    def digest(self) -> str:
        folder = self._options.cache_dir
        return digest_model(self._path, Path(folder).expanduser() if folder else None)


def compile_llm(path: Path, device: Device, options: Options) -> CompiledLLM:
    """Compile, or load from the cache, what an LLM needs.

    Args:
        path: an IR's ``.xml`` or a Hugging Face folder.
        device: where it will run.
        options: lengths, variants, precision, cache.

    Raises:
        ModelError: the model cannot be read or split.
        RuntimeError: the compiler or the device refuses it.
    """
    lengths, capacities = plan(options)
    began = time.perf_counter()
    cache = BlobCache(Path(options.cache_dir).expanduser()) if options.cache_dir else None
    source = _Source(path, device, options)
    stages = list(plan_stages(lengths, capacities, options.batch_slots))
    loaded: list[LoadedModel] = []
    compiled = 0
    for number, stage in enumerate(stages, 1):
        key = _key(source, stage, device, options) if cache is not None else ""
        program = cache.read(key) if cache is not None else None
        if program is None:
            _log.info("compiling %s (%d of %d)", stage.name, number, len(stages))
            program = source.compile(stage)
            compiled += 1
            if cache is not None:
                cache.write(key, program)
        loaded.append(device.load(program))
        drop_pages(program)
    seconds = time.perf_counter() - began
    origin = Origin(compiled, len(stages) - compiled, seconds)
    _log.info("%s", origin)
    prefill, *generate = loaded[: 1 + len(capacities)]
    slots: dict[int, tuple[LoadedModel, ...]] = {}
    for stage, program in zip(stages, loaded, strict=True):
        if stage.slots > 1:
            slots[stage.slots] = (*slots.get(stage.slots, ()), program)
    bank = WeightsBank(device, path if path.is_dir() else path.parent)
    return CompiledLLM(
        device, lengths, tuple(capacities), prefill, tuple(generate), bank, origin, slots
    )


def _key(source: _Source, stage: Stage, device: Device, options: Options) -> str:
    return cache_key(
        {
            "model": source.digest,
            "tokens": str(stage.tokens),
            "past": str(stage.past),
            "slots": str(stage.slots),
            "device": f"{options.devices} {device.version}",
            "format": CACHE_FORMAT,
            "kv": options.kv_cache_precision,
            **options.compiler_config(),
        }
    )
