"""One static model, compiled or taken from the cache, and loaded."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from compiler_layer.elements import NUMPY
from compiler_layer.weights import WEIGHT_PREFIX
from npuw_layer.adapters.level_zero import LevelZeroDevice
from npuw_layer.cache.blob_cache import BlobCache
from npuw_layer.cache.key import MODEL, STAGE, CacheKey, compiler_choices, current_versions
from npuw_layer.cache.model_digest import digest_model, model_files
from npuw_layer.errors import DeviceError, ModelError
from npuw_layer.llm.model_files import ModelFiles
from npuw_layer.llm.programs import Origin, load
from npuw_layer.options import Options
from npuw_layer.ports import ASSIGN_PREFIX, READ_PREFIX, Array, LoadedModel, TensorInfo
from npuw_layer.static.initial_values import pack_values, unpack_values
from npuw_layer.static.port import Port
from npuw_layer.weights_bank import WeightsBank

if TYPE_CHECKING:
    from compiler_layer.model import Model

_log = logging.getLogger(__name__)

_STATE = {"STATE_IN_PLACE": "YES"}
"""What the compiler is told besides options."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a stateful model."""

    port: Port
    """Its id as a name, and its type on the device."""
    initial: Array
    """Its value after a reset."""
    arguments: tuple[str, ...]
    """The program's input that it is read by, and the output that it is assigned by, if any."""


@dataclass(frozen=True, slots=True)
class CompiledStatic:
    """A loaded program with its weights; requests change nothing here."""

    device: LevelZeroDevice
    loaded: LoadedModel
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    variables: tuple[Variable, ...]
    bank: WeightsBank
    origin: Origin


def compile_static(path: Path, device: LevelZeroDevice, options: Options) -> CompiledStatic:
    """Compile, or load from the cache, a static model.

    Args:
        path: an IR's ``.xml``.
        device: where it will run.
        options: precision, tiles, cache; those of NPUW_LLM_… change nothing.

    Raises:
        ModelError: the model cannot be read, is dynamic, or is not supported.
        DeviceError: the device refuses it.
    """
    began = time.perf_counter()
    files = ModelFiles.look(model_files(path), path if path.is_dir() else path.parent)
    loaded, initial, cached = _loaded(path, files, device, options)
    origin = Origin(time.perf_counter() - began, int(not cached), int(cached))
    _log.info("%s", origin)
    made = (READ_PREFIX, WEIGHT_PREFIX)
    inputs = [info for info in loaded.inputs if not info.name.startswith(made)]
    outputs = [info for info in loaded.outputs if not info.name.startswith(ASSIGN_PREFIX)]
    return CompiledStatic(
        device,
        loaded,
        tuple(Port.of(info, index, is_input=True) for index, info in enumerate(inputs)),
        tuple(Port.of(info, index, is_input=False) for index, info in enumerate(outputs)),
        tuple(_variables(loaded, initial)),
        WeightsBank(device, files.folder, check=files.check),
        origin,
    )


def _loaded(
    path: Path, files: ModelFiles, device: LevelZeroDevice, options: Options
) -> tuple[LoadedModel, Mapping[str, Array], bool]:
    """Give the program, its variables' initial values, and whether both were in the cache."""
    model = _PreparedModel(path, files, options)
    if not options.cache_dir:
        return load(device, model.compile(device)), model.initial, False
    folder = Path(options.cache_dir).expanduser()
    versions = current_versions(device, options)
    parts = {MODEL: digest_model(path, folder), **versions, **compiler_choices(options), **_STATE}
    keys = [CacheKey({**parts, STAGE + "part": part}) for part in ("program", "initial values")]
    name = path.name
    program, loaded = BlobCache(folder, device.constants, options.encryption).load(
        name, keys[0], lambda: model.compile(device), partial(load, device)
    )
    packed, initial = BlobCache(folder, lambda _: (), options.encryption).load(
        f"initial values of {name}", keys[1], lambda: pack_values(model.initial), unpack_values
    )
    return loaded, initial, not (program.compiled or packed.compiled)


class _PreparedModel:
    """The graph, read when it is first needed."""

    def __init__(self, path: Path, files: ModelFiles, options: Options) -> None:
        self._path = path
        self._files = files
        self._options = options

    def compile(self, device: LevelZeroDevice) -> bytes:
        """Compile it; its graph is consumed.

        Raises:
            ModelError: its files were changed meanwhile; their digest is that of others.
        """
        program = device.compile(self._prepared[0], _config(self._options))
        self._files.check(self._files.statuses)
        return program

    @property
    def initial(self) -> Mapping[str, Array]:
        """What its variables start as."""
        return self._prepared[1]

    @cached_property
    def _prepared(self) -> tuple[Model, Mapping[str, Array]]:
        # Imported here: a warm start, which compiles nothing, loads no graphs.
        from npuw_layer.read_model import read_model
        from npuw_layer.static.prepare import prepare

        model = read_model(self._path)
        return model, prepare(model, self._options.precision)


def _config(options: Options) -> dict[str, str]:
    return {**options.compiler_config(), **_STATE}


def _variables(loaded: LoadedModel, initial: Mapping[str, Array]) -> list[Variable]:
    """Pair inputs and outputs by their names; what nobody uses the old value of has no input."""
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
        said = " and ".join(f"{element} {list(shape)}" for element, shape in kinds)
        raise ModelError(f"variable {name!r} is {said}; on the NPU it has one type and one shape")
    ((element, shape),) = kinds
    kind = NUMPY[element]
    if initial is None:
        initial = np.zeros(shape, kind)
    if (initial.dtype, initial.shape) != (kind, shape):
        raise DeviceError(f"variable {name!r}: the program is not that of its initial values")
    ports = tuple(info.name for info in (old, new) if info is not None)
    return Variable(Port(name, element, shape, index, is_input=True), initial, ports)
