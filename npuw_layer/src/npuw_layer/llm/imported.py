"""An LLM from a file that ``exported`` wrote, which may come from anywhere and is not believed.

Source: fact sheet npuw §d, §f 23 and 27 to 29; genai §c.2.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from npuw_layer.blob.container import MODEL, Container, read_container
from npuw_layer.blob.encryption import decrypt
from npuw_layer.blob.manifest import ModelManifest
from npuw_layer.blob.source import Source, open_blob
from npuw_layer.cache.key import current_versions, own_version
from npuw_layer.cache.known_files import KnownFiles
from npuw_layer.cache.model_digest import digest_files
from npuw_layer.errors import BlobError, BlobVersionError, DeviceError, ModelError, OptionError
from npuw_layer.llm.compiled import CompiledLLM, assemble
from npuw_layer.llm.exported import check_device, check_options, is_own_platform
from npuw_layer.llm.imported_ports import check_ports
from npuw_layer.llm.model_files import ModelFiles, WeightSources, needed_files
from npuw_layer.llm.programs import Origin, StageProgram, blob_weights, load
from npuw_layer.llm.stages import Stage, plan
from npuw_layer.options import NAMES, RUN_TIME, Options, parse_options
from npuw_layer.ports import Device, LoadedModel
from npuw_layer.stored_weights import PART, StoredWeights, WantedWeights

_log = logging.getLogger(__name__)


def import_llm(
    source: Source,
    config: Mapping[str, Any],
    make_device: Callable[[Options], Device],
    model: Path | None = None,
) -> CompiledLLM:
    """Load an LLM that was exported.

    Args:
        source: a path, a stream or bytes; a file is mapped, not copied.
        config: options, none of which may contradict those of the blob.
        make_device: gives the device that options name.
        model: the model that it was made of, if that is at hand.

    Returns:
        The LLM; its options are the blob's, and those of a run.

    Raises:
        BlobVersionError: other versions, or another device, made it.
        BlobError: it is damaged, or not what it should be.
        OptionError: an option contradicts it, or its weights are nowhere.
        ModelError: the weights at hand are not those that it was made of.
        DeviceError: the device refuses it.
    """
    began = time.perf_counter()
    given = parse_options(config)
    if given.untrusted_source:
        raise OptionError(
            "NPU_UNTRUSTED_SOURCE = YES: blobs of NPUW are imported from trusted sources alone"
        )
    content, path = open_blob(source)
    name = str(path or "the blob")
    with _named(name):
        content = decrypt(content, given.encryption)
        blob = read_container(content, MODEL, ModelManifest)
        _check_versions(blob.manifest.versions, own_version())
        options = _join_options(blob.manifest.options, config)
        stages = _plan_stages(options)
        device = make_device(options)
        check_device(device, options)
        _check_versions(blob.manifest.versions, current_versions(device, options))
        _check_names(blob, stages)
        _verify(blob, path, KnownFiles(_folder(options)))
        files = replace(
            _find_weights(blob.manifest.files, options, model), model=blob.manifest.model
        )
        programs = list(map(StageProgram, stages, blob.programs))
        loaded = [_load(device, one) for one in programs]
        stored = _stored(blob, blob_weights(stages, loaded, options))
        if not needed_files(loaded, stored or ()) <= files.statuses.keys():
            raise BlobError("a program needs files that the manifest does not name")
        check_ports(stages, loaded, options)
    origin = Origin(time.perf_counter() - began, imported=len(stages))
    _log.info("%s: %s", name, origin)
    return assemble(device, options, loaded, programs, origin, WeightSources(files, stored))


@contextmanager
def _named(name: str) -> Generator[None, None, None]:
    """Let errors say which blob they are about."""
    try:
        yield
    except BlobVersionError as error:
        raise BlobVersionError(error.what, error.found, error.needed, name) from None
    except BlobError as error:
        raise BlobError(f"{name}: {error}") from None
    except DeviceError as error:
        raise DeviceError(f"{name}: {error}") from error


def _join_options(fixed: Mapping[str, str], config: Mapping[str, Any]) -> Options:
    """Read the blob's options, and what is given for this run.

    Raises:
        BlobError: the blob's are wrong.
        OptionError: those given are, or contradict the blob's.
    """
    given = parse_options(config)
    check_options(given)
    run_time = {name: value for name, value in config.items() if name in RUN_TIME}
    if "NPU_PLATFORM" not in fixed and "NPU_PLATFORM" in config:
        run_time["NPU_PLATFORM"] = config["NPU_PLATFORM"]
    foreign = sorted(fixed.keys() & RUN_TIME)
    if foreign or is_own_platform(fixed):
        raise BlobError(f"it decides on {', '.join(foreign) or 'NPU_PLATFORM'}, which it must not")
    try:
        options = parse_options(fixed)
    except OptionError as error:
        raise BlobError(f"its options are wrong: {error}") from None
    wrong = [
        f"{name} = {getattr(given, NAMES[name])!r} (the blob has {getattr(options, NAMES[name])!r})"
        for name in config
        if name not in run_time and getattr(given, NAMES[name]) != getattr(options, NAMES[name])
    ]
    if wrong:
        raise OptionError(
            f"what was fixed when the blob was compiled contradicts {', '.join(wrong)}; leave "
            "it out, or export the blob anew"
        )
    return parse_options({**fixed, **run_time})


def _check_versions(found: Mapping[str, str], ours: Mapping[str, str]) -> None:
    for what, version in ours.items():
        if found.get(what) != version:
            raise BlobVersionError(what, found.get(what, "none"), version)


def _verify(blob: Container[ModelManifest], path: Path | None, known: KnownFiles) -> None:
    """Verify all that loading reads; constants, too, unless they are known to be whole."""
    blob.check_programs()
    if not blob.has_constants:
        return
    status = None if path is None else path.stat()
    if path is not None and status is not None and known.recall(path, status) == blob.digest:
        return
    blob.check_constants()
    if path is not None and status is not None:
        known.learn(path, status, blob.digest)


def _plan_stages(options: Options) -> list[Stage]:
    """The stages follow from the options.

    Raises:
        BlobError: none do.
    """
    try:
        return list(plan(options).stages)
    except OptionError as error:
        raise BlobError(f"its options are wrong: {error}") from None


def _load(device: Device, one: StageProgram) -> LoadedModel:
    """Load a program, which there is nothing to make anew from.

    Raises:
        DeviceError: the device refuses it.
    """
    try:
        return load(device, one.program)
    except RuntimeError as error:
        what = f"the device refuses {one.stage.name}: {error}; export the model anew"
        raise DeviceError(what) from error


def _check_names(blob: Container[ModelManifest], stages: Sequence[Stage]) -> None:
    """A blob has just the programs that there should be, and maybe weights behind them.

    Raises:
        BlobError: it has others.
    """
    expected = [stage.name for stage in stages]
    found = [part.name for part in blob.manifest.parts]
    if found not in (expected, [*expected, PART]):
        raise BlobError(f"its programs are {', '.join(found)}, not {', '.join(expected)}")


def _stored(blob: Container[ModelManifest], wanted: WantedWeights | None) -> StoredWeights | None:
    """Take the weights that are in the blob.

    Raises:
        BlobError: they are not those that should be.
    """
    part = blob.manifest.parts[-1]
    there = part.name == PART
    if there != (wanted is not None):
        raise BlobError(f"it has {'weights that no program reads' if there else 'no weights'}")
    if wanted is None:
        return None
    digest = hashlib.sha256(part.model_dump_json().encode()).hexdigest()
    return StoredWeights(blob.programs[-1], wanted.layout, digest)


def _find_weights(digests: Mapping[str, str], options: Options, model: Path | None) -> ModelFiles:
    """Find the files that hold the weights, and see that they are the ones.

    Raises:
        OptionError: nobody says where they are.
        ModelError: they are not there, or others.
    """
    if not digests:
        return ModelFiles(Path(), {})
    place = options.weights_path or options.model_ptr or model
    if not place:
        raise OptionError(
            f"the blob is without weights ({', '.join(digests)}); set WEIGHTS_PATH to the model's "
            "weights, or MODEL_PTR to the model"
        )
    path = Path(place).expanduser()
    folder = path if path.is_dir() else path.parent
    if options.weights_path and path.is_file() and path.name not in digests:
        raise ModelError(f"WEIGHTS_PATH {path}: the blob was made of {', '.join(digests)}")
    paths = [folder / name for name in digests]
    files = ModelFiles.look(paths, folder)
    for name, digest in digest_files(paths, KnownFiles(_folder(options))).items():
        if digest != digests[name]:
            raise ModelError(f"{folder / name} is not the file that the blob was made of")
    return files


def _folder(options: Options) -> Path | None:
    """Where digests are kept; it may not be there yet, and then nothing is."""
    return Path(options.cache_dir).expanduser() if options.cache_dir else None
