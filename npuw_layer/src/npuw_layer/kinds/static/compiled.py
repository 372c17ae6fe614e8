"""A static model, compiled or taken from the cache, and loaded."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from compiler_layer.elements import NUMPY
from npuw_layer.backends.protocols import (
    ASSIGN_PREFIX,
    READ_PREFIX,
    STATIC_MODEL,
    SUBMODEL,
    Array,
    Device,
    FindsConstants,
    ImportsMemory,
    LoadedModel,
    TensorInfo,
    ability,
)
from npuw_layer.errors import DeviceError, ModelError
from npuw_layer.execution.dumps import dumped
from npuw_layer.execution.profiling.labels import labelled
from npuw_layer.kinds.static.batch import batch_of, of_one_item
from npuw_layer.kinds.static.initial_values import PARTS, pack_values, unpack_values
from npuw_layer.kinds.static.port import StaticPort, is_port
from npuw_layer.kinds.static.source import GraphSource
from npuw_layer.options import Options
from npuw_layer.storage.cache.blob_cache import BlobCache
from npuw_layer.storage.cache.key import (
    MODEL,
    STAGE,
    CacheKey,
    compiler_choices,
    current_versions,
    partition_choices,
)
from npuw_layer.storage.cache.model_digest import digest_model, model_files
from npuw_layer.storage.model_files import ModelFiles, WeightSources
from npuw_layer.storage.programs import Origin, constants_of, load
from npuw_layer.weights.bank import WeightsBank
from npuw_layer.weights.sharing.bank import share_bank

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from npuw_layer.weights.sharing.arena import SharedArena

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a stateful model."""

    port: StaticPort
    """Port named after the variable's id, with its type on the device."""
    initial: Array
    """Value after a reset."""
    arguments: tuple[str, ...]
    """The program's input that reads the variable and output that assigns it, if they exist."""


@dataclass(frozen=True, slots=True)
class CompiledStatic:
    """A loaded program with its weights; requests do not modify it.

    Attributes:
        npu: the NPU whose memory holds the tensors of requests.
        device: the device that runs the program: the NPU, or several devices that use its memory.
        options: options of the compilation.
        programs: the loaded program and its initial values.
        inputs, outputs: ports of the model, without variables.
        variables: the model's state between inferences.
        bank: the weights bank.
        sources: origins of the weights.
        shared: weights shared with other processes.
        origin: whether the programs were compiled, cached or imported.
        batch: batch of a model that runs item by item (``kinds.static.batch``) with this program;
            None if the program takes the complete batch.
    """

    npu: ImportsMemory
    device: Device
    options: Options
    programs: StaticPrograms
    inputs: tuple[StaticPort, ...]
    outputs: tuple[StaticPort, ...]
    variables: tuple[Variable, ...]
    bank: WeightsBank
    sources: WeightSources
    shared: SharedArena | None
    origin: Origin
    batch: int | None = None

    @property
    def submodels(self) -> Mapping[str, LoadedModel]:
        """The only submodel, by its name."""
        return {self.programs.submodel: self.programs.loaded}


@dataclass(frozen=True, slots=True)
class StaticPrograms:
    """A static model in the form that a device takes.

    Attributes:
        program: the compiled program.
        values: packed initial values of the variables.
        loaded: the loaded program.
        initial: initial values by variable name.
        submodel: name of the submodel.
    """

    program: bytes | memoryview
    values: bytes | memoryview
    loaded: LoadedModel
    initial: Mapping[str, Array]
    submodel: str = STATIC_MODEL


@dataclass(frozen=True, slots=True)
class StaticContent:
    """A loaded program and its weights; ``CompiledStatic`` describes the attributes."""

    device: Device
    options: Options
    programs: StaticPrograms
    sources: WeightSources
    batch: int | None = None


def compile_static(
    source: GraphSource, device: Device, npu: ImportsMemory, options: Options
) -> CompiledStatic:
    """Compile a static model, or load it from the cache.

    Args:
        source: the model's files and graph.
        device: the device that runs the model.
        npu: the NPU whose memory holds the tensors: ``device`` itself, or one that it uses.
        options: precision, tiles, cache, batch; options NPUW_LLM_… have no effect.

    Raises:
        OptionError: NPU_BATCH_MODE is impossible for this model.
        ModelError: the model cannot be read, is dynamic, or is not supported.
        DeviceError: the device rejects the model.
    """
    began = time.perf_counter()
    path = source.path
    batch = None if source.whole_batch else batch_of(path, options)
    if batch is not None:
        source = of_one_item(source, batch)
    files = ModelFiles.look(model_files(path), path if path.is_dir() else path.parent)
    programs, cached = _obtain(source, files, device, options)
    origin = Origin(time.perf_counter() - began, int(not cached), int(cached))
    _log.info("%s: %s", source.name, origin)
    content = StaticContent(device, options, programs, WeightSources(files, None), batch)
    return assemble(npu, content, origin)


def assemble(npu: ImportsMemory, content: StaticContent, origin: Origin) -> CompiledStatic:
    """Assemble a loaded model; ``CompiledStatic`` describes the arguments.

    Raises:
        ModelError: a variable has two types or shapes.
        DeviceError: the initial values belong to another program.
    """
    device, options = content.device, content.options
    programs, sources = content.programs, content.sources
    loaded = dumped(programs.loaded, programs.submodel, options)
    own = "" if programs.submodel == STATIC_MODEL else programs.submodel
    loaded = labelled(loaded, own, options)
    programs = replace(programs, loaded=loaded)
    bank = WeightsBank(device, sources.files.folder, sources.stored, sources.files.check)
    return CompiledStatic(
        npu=npu,
        device=device,
        options=options,
        programs=programs,
        inputs=_ports(loaded.inputs, is_input=True),
        outputs=_ports(loaded.outputs, is_input=False),
        variables=tuple(_variables(loaded, programs.initial)),
        bank=bank,
        sources=sources,
        shared=share_bank(bank, [loaded], sources.hashing(options.cache_folder), device, options),
        origin=origin,
        batch=content.batch,
    )


def _ports(infos: Sequence[TensorInfo], is_input: bool) -> tuple[StaticPort, ...]:
    ports = enumerate(filter(is_port, infos))
    return tuple(StaticPort.of(info, index, is_input) for index, info in ports)


def _obtain(
    source: GraphSource, files: ModelFiles, device: Device, options: Options
) -> tuple[StaticPrograms, bool]:
    """Return the programs, and whether all came from the cache."""
    model = _PreparedModel(source, files, options)
    folder = options.cache_folder
    if folder is None:
        program = model.compile(device)
        values = pack_values(model.initial)
        loaded = load(device, program)
        return StaticPrograms(program, values, loaded, model.initial, source.submodel), False
    keys = _keys(source, folder, device, options)
    name = source.name
    program, loaded = BlobCache(folder, partial(constants_of, device), options.encryption).load(
        name, keys[0], lambda: model.compile(device), partial(load, device)
    )
    packed, initial = BlobCache(folder, lambda _: (), options.encryption).load(
        f"initial values of {name}", keys[1], lambda: pack_values(model.initial), unpack_values
    )
    found = StaticPrograms(program.program, packed.program, loaded, initial, source.submodel)
    return found, not (program.compiled or packed.compiled)


def _keys(
    source: GraphSource, folder: Path, device: Device, options: Options
) -> Sequence[CacheKey]:
    """Return the cache keys of the program and of the initial values."""
    parts = {
        MODEL: digest_model(source.path, folder),
        **source.depends,
        **current_versions(device, options),
        **partition_choices(options),
        **compiler_choices(options),
        **_compiler_settings(options),
    }
    if not ability(device, FindsConstants):
        parts["place"] = str(source.path.resolve())  # its programs refer to files by path
    return [CacheKey({**parts, STAGE + "part": part}) for part in PARTS]


class _PreparedModel:
    """A graph that is read on first use."""

    def __init__(self, source: GraphSource, files: ModelFiles, options: Options) -> None:
        self._source = source
        self._files = files
        self._options = options

    def compile(self, device: Device) -> bytes:
        """Compile the graph, which consumes it.

        Raises:
            ModelError: the model's files changed meanwhile, so their digest is out of date.
        """
        config = {**self._options.compiler_config(), **_compiler_settings(self._options)}
        config[SUBMODEL] = self._source.submodel
        program = device.compile(self._prepared[0], config)
        self._files.check(self._files.statuses)
        return program

    @property
    def initial(self) -> Mapping[str, Array]:
        """Initial values of the variables."""
        return self._prepared[1]

    @cached_property
    def _prepared(self) -> tuple[Model, Mapping[str, Array]]:
        # Imported here: a warm start, which compiles nothing, loads no graphs.
        from npuw_layer.kinds.static.prepare import prepare

        model = self._source.graph()
        return model, prepare(model, self._options.precision)


def _compiler_settings(options: Options) -> dict[str, str]:
    """Return compiler settings other than options; without NPUW, programs may contain weights."""
    weightless = options.use_npuw or options.weightless
    return {"STATE_IN_PLACE": "YES", "ENABLE_WEIGHTLESS": "YES" if weightless else "NO"}


def _variables(loaded: LoadedModel, initial: Mapping[str, Array]) -> list[Variable]:
    """Pair inputs and outputs by variable name; a variable that is never read has no input."""
    reads = _by_name(loaded.inputs, READ_PREFIX)
    assigns = _by_name(loaded.outputs, ASSIGN_PREFIX)
    return [
        _variable(name, index, reads.get(name), assigns.get(name), initial.get(name))
        for index, name in enumerate(dict.fromkeys([*reads, *assigns]))
    ]


def _by_name(infos: Sequence[TensorInfo], prefix: str) -> dict[str, TensorInfo]:
    found = [info for info in infos if info.name.startswith(prefix)]
    return {info.name.removeprefix(prefix): info for info in found}


def _variable(
    name: str, index: int, old: TensorInfo | None, new: TensorInfo | None, initial: Array | None
) -> Variable:
    kinds = {(info.element, info.shape) for info in (old, new) if info is not None}
    if len(kinds) > 1:
        found = " and ".join(f"{element} {list(shape)}" for element, shape in kinds)
        raise ModelError(f"variable {name!r} is {found}; the NPU needs a single type and shape")
    ((element, shape),) = kinds
    kind = NUMPY[element]
    if initial is None:
        initial = np.zeros(shape, kind)
    if (initial.dtype, initial.shape) != (kind, shape):
        raise DeviceError(f"variable {name!r}: its initial value belongs to another program")
    ports = tuple(info.name for info in (old, new) if info is not None)
    return Variable(StaticPort(name, element, index, shape, is_input=True), initial, ports)
