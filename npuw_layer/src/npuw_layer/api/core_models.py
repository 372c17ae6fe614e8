"""Compiles and imports models of every kind, each on the devices that its options name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compiler_layer.garbage import collected_later
from npuw_layer.api.core_devices import CoreDevices
from npuw_layer.backends.protocols import Device
from npuw_layer.kinds.embedding.compiled import compile_text
from npuw_layer.kinds.embedding.compiled_model import TextCompiledModel
from npuw_layer.kinds.kokoro.compiled_model import KokoroCompiledModel
from npuw_layer.kinds.static.batched_model import StaticModel, ready_static
from npuw_layer.kinds.static.compiled import compile_static
from npuw_layer.kinds.static.source import GraphSource
from npuw_layer.kinds.whisper.compiled import compile_decoder
from npuw_layer.kinds.whisper.compiled_model import made_model
from npuw_layer.llm.compiled import CompiledLLM, compile_llm
from npuw_layer.llm.compiled_model import CompiledModel
from npuw_layer.options import Options, parse_options
from npuw_layer.storage.container import STATIC, kind_of
from npuw_layer.storage.model_blob.checks import (
    DEFAULT_PATH,
    check_compatibility,
    check_device,
    check_target,
)
from npuw_layer.storage.source import Source
from npuw_layer.traits.lora.adaptation import Adaptation

if TYPE_CHECKING:
    from npuw_layer.kinds.paged.compiled_model import PagedCompiledModel


def compile_any(
    devices: CoreDevices, path: Path, options: Options
) -> CompiledModel | TextCompiledModel | StaticModel | KokoroCompiledModel | PagedCompiledModel:
    """Compile a model, and export it if that is wanted.

    Args:
        devices: what runs it.
        path: an IR's ``.xml``, or a Hugging Face folder.
        options: that say which way it goes (``routing``).

    Raises:
        NpuwError: as ``Core.compile_model``.
    """
    if options.kokoro:
        return _kokoro(devices, path, options)
    if options.paged:
        return _paged(devices, path, options)
    compile_one = compile_split if options.llm else _static
    return compile_one(devices, path, options)


def import_any(
    devices: CoreDevices, source: Source, config: Mapping[str, Any], model: Path | None = None
) -> CompiledModel | TextCompiledModel | StaticModel:
    """Load a model that was exported.

    Args:
        devices: make what runs it.
        source: as ``Core.import_model`` takes it.
        config: the same.
        model: that it was made of, if that is known.

    Raises:
        NpuwError: as ``Core.import_model``.
    """
    # Imported here and below: few starts need it.
    from npuw_layer.storage.model_blob.imported import BlobBytes
    from npuw_layer.storage.native_blob.container import looks_native

    opened = BlobBytes.open(source, config, model)
    given = parse_options(config)
    given.set_log_level()
    raw = given.import_raw_blob
    with collected_later():
        if not kind_of(opened.content) and (raw or looks_native(opened.content)):
            from npuw_layer.storage.native_blob.imported import import_native

            made = import_native(opened, devices.of_static, devices.npu_of)
            return ready_static(made)
        opened = opened.in_clear()
        if kind_of(opened.content) == STATIC:
            from npuw_layer.kinds.static.imported import import_static

            made = import_static(opened, devices.of_static, devices.npu_of)
            return ready_static(made)
        from npuw_layer.llm.imported import import_llm

        return _ready(import_llm(opened, devices.of_llm))


def compile_split(
    devices: CoreDevices, path: Path, options: Options, adaptation: Adaptation | None = None
) -> CompiledModel | TextCompiledModel:
    """Compile a language model, with LoRA adapters if there are any; as ``compile_any``."""
    device = devices.of_llm(options)
    if options.weights_offload != "NO":
        # Imported here: who does not offload loads nothing of it.
        from npuw_layer.execution.offload.device import offloading

        device = offloading(device, path if path.is_dir() else path.parent, options)
    target = _export_target(device, options)
    if options.reads_texts:
        compiled = _ready(compile_text(path, device, options))
    elif options.whisper:
        compiled = _ready(compile_decoder(path, device, options, adaptation))
    else:
        compiled = _ready(compile_llm(path, device, options, adaptation))
    if target is not None:
        compiled.export_model(target)
    return compiled


def _static(devices: CoreDevices, path: Path, options: Options) -> StaticModel:
    """The same of a static model."""
    device = devices.of_static(options)
    target = _export_target(device, options)
    npu = devices.npu_of(device, options)
    source = GraphSource.whole(path)
    compiled = ready_static(compile_static(source, device, npu, options))
    if target is not None:
        compiled.export_model(target)
    return compiled


def _kokoro(devices: CoreDevices, path: Path, options: Options) -> KokoroCompiledModel:
    """Compile both parts of a model that makes speech."""
    # Imported here: few models make speech.
    from npuw_layer.kinds.kokoro.compiled import compile_kokoro
    from npuw_layer.kinds.kokoro.names import SUBMODELS

    device = devices.of_static(options, SUBMODELS)
    npu = devices.npu_of(device, options)
    return KokoroCompiledModel(compile_kokoro(path, device, npu, options))


def _paged(devices: CoreDevices, path: Path, options: Options) -> PagedCompiledModel:
    """Compile a model with paged attention for some numbers of tokens."""
    # Imported here: few models have it, and a warm start of others loads no graphs.
    from npuw_layer.kinds.paged.compiled import compile_paged, submodels
    from npuw_layer.kinds.paged.compiled_model import PagedCompiledModel

    device = devices.of_static(options, submodels(options))
    npu = devices.npu_of(device, options)
    return PagedCompiledModel(compile_paged(path, device, npu, options))


def _ready(compiled: CompiledLLM) -> CompiledModel | TextCompiledModel:
    """Give a compiled model as what it is for."""
    return TextCompiledModel(compiled) if compiled.options.reads_texts else made_model(compiled)


def _export_target(device: Device, options: Options) -> Path | None:
    """Where a model is to be exported to, if it is; what prevents that is said before compiling.

    Raises:
        OptionError: it cannot be.
    """
    if not options.export_blob:
        return None
    target = Path(options.blob_path or DEFAULT_PATH).expanduser()
    check_target(target)
    check_compatibility(options)
    check_device(device, options)
    return target
