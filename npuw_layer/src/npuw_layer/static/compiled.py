"""One static model, compiled or taken from the cache, and loaded."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from compiler_layer.elements import NUMPY
from compiler_layer.weights import WEIGHT_PREFIX
from npuw_layer.adapters.level_zero import LevelZeroDevice
from npuw_layer.blob_cache import BlobCache, cache_key, drop_pages
from npuw_layer.errors import DeviceError, ModelError
from npuw_layer.llm.compiled import Origin
from npuw_layer.model_digest import digest_model
from npuw_layer.options import Options
from npuw_layer.ports import ASSIGN_PREFIX, READ_PREFIX, Array, LoadedModel, TensorInfo
from npuw_layer.static.initial_values import pack_values, unpack_values
from npuw_layer.static.port import Port
from npuw_layer.weights_bank import WeightsBank

if TYPE_CHECKING:
    pass

_log = logging.getLogger(__name__)

CACHE_FORMAT = "1"
"""Changes whenever the same model is compiled to something else; part of the cache's key."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a stateful model."""

    port: Port
    """Its id as a name, and its type on the device."""
    initial: Array
    """Its value after a reset."""
    assigned: bool
    """Whether inferences change it."""


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
    program, initial, cached = _program(path, device, options)
    loaded = device.load(program)
    drop_pages(program)
    origin = Origin(0 if cached else 1, int(cached), time.perf_counter() - began)
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
        WeightsBank(device, path if path.is_dir() else path.parent),
        origin,
    )


def _program(
    path: Path, device: LevelZeroDevice, options: Options
) -> tuple[bytes | memoryview, Mapping[str, Array], bool]:
    """Give the program, its variables' initial values, and whether they were in the cache."""
    if not options.cache_dir:
        return *_compile(path, device, options), False
    folder = Path(options.cache_dir).expanduser()
    cache = BlobCache(folder)
    parts = {
        "model": digest_model(path, folder),
        "device": device.version,
        "format": CACHE_FORMAT,
        **_config(options),
    }
    keys = [cache_key({**parts, "part": part}) for part in ("static program", "initial values")]
    program, packed = (cache.read(key) for key in keys)
    values = None if packed is None else unpack_values(packed)
    if program is not None and values is not None:
        return program, values, True
    compiled, initial = _compile(path, device, options)
    cache.write(keys[0], compiled)
    cache.write(keys[1], pack_values(initial))
    return compiled, initial, False


def _compile(
    path: Path, device: LevelZeroDevice, options: Options
) -> tuple[bytes, Mapping[str, Array]]:
    # Imported here: a warm start, which compiles nothing, loads no graphs.
    from npuw_layer.read_model import read_model
    from npuw_layer.static.prepare import prepare

    model = read_model(path)
    initial = prepare(model, options.precision)
    return device.compile(model, _config(options)), initial


def _config(options: Options) -> dict[str, str]:
    return {**options.compiler_config(), "STATE_IN_PLACE": "YES"}


def _variables(loaded: LoadedModel, initial: Mapping[str, Array]) -> list[Variable]:
    outputs = {info.name: info for info in loaded.outputs}
    found: list[Variable] = []
    for info in loaded.inputs:
        if info.name.startswith(READ_PREFIX):
            name = info.name.removeprefix(READ_PREFIX)
            new = outputs.get(ASSIGN_PREFIX + name)
            found.append(_variable(name, len(found), info, new, initial.get(name)))
    return found


def _variable(
    name: str, index: int, old: TensorInfo, new: TensorInfo | None, initial: Array | None
) -> Variable:
    if new is not None and (new.element, new.shape) != (old.element, old.shape):
        raise ModelError(
            f"variable {name!r} is read as {old.element} {list(old.shape)} and assigned as "
            f"{new.element} {list(new.shape)}; on the NPU it has one type and one shape"
        )
    kind = NUMPY[old.element]
    if initial is None:
        initial = np.zeros(old.shape, kind)
    if (initial.dtype, initial.shape) != (kind, old.shape):
        raise DeviceError(f"variable {name!r}: the program is not that of its initial values")
    port = Port(name, old.element, old.shape, index, is_input=True)
    return Variable(port, initial, new is not None)
