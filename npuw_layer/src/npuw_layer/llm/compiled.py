"""All static models of one LLM, compiled or taken from the cache."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from npuw_layer.blob_cache import BlobCache, cache_key, drop_pages
from npuw_layer.errors import NotFolded
from npuw_layer.llm.prefix_cache import PrefixCache
from npuw_layer.llm.stages import Kind, Plan, Stage, plan
from npuw_layer.model_digest import digest_model
from npuw_layer.options import Options
from npuw_layer.ports import Device, LoadedModel
from npuw_layer.weights_bank import WeightsBank

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from npuw_layer.sharing.arena import SharedArena

_log = logging.getLogger(__name__)

CACHE_FORMAT = "4"
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
    """The loaded programs of an LLM and its weights; conversations change nothing here.

    They do fill the prefix cache, which is theirs in common.
    """

    device: Device
    options: Options
    plan: Plan
    models: Mapping[Stage, LoadedModel]
    bank: WeightsBank
    prefixes: PrefixCache | None
    origin: Origin
    shared: SharedArena | None = None
    """The weights that other processes use too."""


class _Source:
    """The stateful graph, read when it is first needed, and as small as it can be folded."""

    def __init__(self, path: Path, device: Device, options: Options) -> None:
        self._path = path
        self._device = device
        self._options = options
        self._smallest: Model | None = None

    def compile(self, stage: Stage) -> bytes:
        """Split and compile what a stage needs."""
        while True:
            model = self._smallest or self._next()
            graph = self._graph(model, stage)
            try:
                return self._device.compile(graph, self._options.compiler_config())
            except NotFolded as error:
                _log.info("%s; with more layers", error)
                self._smallest = None

    def _graph(self, model: Model, stage: Stage) -> Model:
        """The static graph of a stage."""
        # Imported here and below: a warm start, which compiles nothing, loads no graphs.
        from npuw_layer.llm.head import Head, cut_head
        from npuw_layer.llm.split import split

        if stage.kind is Kind.HEAD:
            return cut_head(model, stage.tokens)
        whole = Head.ALL if stage.kind is Kind.GENERATE else Head.LAST
        head = Head.CUT if self._options.shared_head else whole
        return split(model, stage.tokens, stage.past, self._options.kv_cache_precision, head)

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
        return self.read_digest()

    def read_digest(self) -> str:
        """Hash the model's files as they are now."""
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
    planned = plan(options)
    began = time.perf_counter()
    cache = BlobCache(Path(options.cache_dir).expanduser()) if options.cache_dir else None
    source = _Source(path, device, options)
    loaded: dict[Stage, LoadedModel] = {}
    compiled = 0
    for number, stage in enumerate(planned.stages, 1):
        key = _key(source, stage, device, options) if cache is not None else ""
        program = cache.read(key) if cache is not None else None
        if program is None:
            _log.info("compiling %s (%d of %d)", stage.name, number, len(planned.stages))
            program = source.compile(stage)
            compiled += 1
            if cache is not None:
                cache.write(key, program)
        loaded[stage] = device.load(program)
        drop_pages(program)
    seconds = time.perf_counter() - began
    origin = Origin(compiled, len(loaded) - compiled, seconds)
    _log.info("%s", origin)
    bank = WeightsBank(device, path if path.is_dir() else path.parent)
    shared = _share(bank, loaded.values(), source, device, options)
    prefixes = _prefixes(options)
    return CompiledLLM(device, options, planned, loaded, bank, prefixes, origin, shared)


def _prefixes(options: Options) -> PrefixCache | None:
    if not options.prefix_caching:
        return None
    sizes = options.prefix_block_size, options.prefix_max_blocks, options.prefix_max_bytes
    return PrefixCache(*sizes)


def _share(
    bank: WeightsBank,
    loaded: Iterable[LoadedModel],
    source: _Source,
    device: Device,
    options: Options,
) -> SharedArena | None:
    """Let the bank share its weights with other processes, if it is to."""
    if not options.shares_weights:
        return None
    from npuw_layer.sharing.weights import share_weights  # who does not share loads no sockets

    inputs = [info for model in loaded for info in model.inputs]
    in_place = options.weights_bank_alloc != "SHARED"
    weights = bank.to_allocate(inputs, in_place)
    return share_weights(device, bank, weights, options.weights_bank, source.read_digest)


def _key(source: _Source, stage: Stage, device: Device, options: Options) -> str:
    return cache_key(
        {
            "model": source.digest,
            "kind": stage.kind.value,
            "head": str(options.shared_head),
            "tokens": str(stage.tokens),
            "past": str(stage.past),
            "device": f"{options.devices} {device.version}",
            "format": CACHE_FORMAT,
            "kv": options.kv_cache_precision,
            **options.compiler_config(),
        }
    )
