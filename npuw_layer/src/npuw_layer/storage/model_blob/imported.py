"""Import of models of every kind, from files that are not trusted.

Source: docs/reference/npuw.md#model-blobs, docs/reference/genai.md#npu-options.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from npuw_layer.backends.protocols import (
    Device,
    ExportsPrograms,
    LoadedModel,
    ability,
)
from npuw_layer.errors import BlobError, BlobVersionError, DamagedBlob, DeviceError, OptionError
from npuw_layer.options import NAMES, RUN_TIME, Options, parse_options
from npuw_layer.options.stages import MAPS, fixed_part, run_time_part
from npuw_layer.storage.cache.key import current_versions, own_version
from npuw_layer.storage.cache.known_files import KnownFiles
from npuw_layer.storage.container import Container, read_container
from npuw_layer.storage.encryption import decrypt
from npuw_layer.storage.manifest import ModelManifest
from npuw_layer.storage.model_blob.checks import check_device, check_options, is_own_platform
from npuw_layer.storage.model_files import ModelFiles, needed_files, verified_weights
from npuw_layer.storage.programs import load
from npuw_layer.weights.stored_weights import PART, StoredWeights, WantedWeights


@dataclass(frozen=True, slots=True)
class BlobBytes:
    """A blob with a model of any kind.

    Attributes:
        content: all of its bytes.
        path: the file with exactly these bytes; None without one.
        config: the options of this run.
        model: the blob's source model; None if it is not available.
    """

    content: memoryview
    path: Path | None
    config: Mapping[str, Any]
    model: Path | None

    @property
    def name(self) -> str:
        """Name of the blob in errors."""
        return str(self.path or "the blob")

    def in_clear(self) -> BlobBytes:
        """Return a blob of NPUW, decrypted if it is encrypted.

        Raises:
            BlobError: the blob cannot be decrypted.
            OptionError: options are wrong, or do not allow such blobs.
        """
        given = parse_options(self.config)
        if given.untrusted_source:
            raise OptionError("NPU_UNTRUSTED_SOURCE = YES: blobs of NPUW need a trusted source")
        with self.named():
            return replace(self, content=decrypt(self.content, given.encryption))

    @contextmanager
    def named(self) -> Generator[None, None, None]:
        """Add the blob's name to errors."""
        try:
            yield
        except (BlobVersionError, DamagedBlob) as error:
            raise error.named(self.name) from None
        except BlobError as error:
            raise BlobError(f"{self.name}: {error}") from None
        except DeviceError as error:
            raise DeviceError(f"{self.name}: {error}") from error


@dataclass(frozen=True, slots=True)
class ImportedBlob:
    """A verified blob, whose programs fit the installation and the request.

    Attributes:
        blob: manifest and programs.
        options: options of the blob, joined with those of this run.
        device: the device that the options name.
        files: the files of the blob's weights.
    """

    blob: Container[ModelManifest]
    options: Options
    device: Device
    files: ModelFiles

    def load(
        self, name: str, program: bytes | memoryview, device: Device | None = None
    ) -> LoadedModel:
        """Load a program; the blob has no source to compile it from again.

        Args:
            name: the program's name in errors.
            program: its bytes.
            device: the program's device, if it differs from the blob's.

        Raises:
            DeviceError: the device rejects the program.
        """
        taking = device or self.device
        try:
            exporting = ability(taking, ExportsPrograms)
            return load(taking, program) if exporting is None else exporting.load_exported(program)
        except RuntimeError as error:
            what = f"the device rejects {name}: {error}; export the model again"
            raise DeviceError(what) from error

    def stored(self, wanted: WantedWeights | None) -> StoredWeights | None:
        """Return the weights stored in the blob; None if programs read none.

        Raises:
            BlobError: the blob lacks weights, or has weights that no program reads.
        """
        part = self.blob.manifest.parts[-1]
        there = part.name == PART
        if there != (wanted is not None):
            raise BlobError(f"it has {'weights that no program reads' if there else 'no weights'}")
        if wanted is None:
            return None
        digest = hashlib.sha256(part.model_dump_json().encode()).hexdigest()
        return StoredWeights(self.blob.programs[-1], wanted.layout, digest)

    def check_files(self, loaded: Sequence[LoadedModel], stored: StoredWeights | None) -> None:
        """Check that the manifest names all files that programs read.

        Raises:
            BlobError: a file is missing.
        """
        if not needed_files(loaded, stored or ()) <= self.files.statuses.keys():
            raise BlobError("a program needs files that the manifest does not name")


def read_model_blob(
    opened: BlobBytes,
    kind: bytes,
    parts_of: Callable[[Options], Sequence[str]],
    make_device: Callable[[Options], Device],
) -> ImportedBlob:
    """Read a blob of NPUW and verify it.

    Args:
        opened: its bytes.
        kind: a kind of ``storage.container``.
        parts_of: returns the expected programs, by options; weights may follow them.
        make_device: returns the device that options name.

    Raises:
        BlobVersionError, BlobError, OptionError, ModelError: as ``verify_model``.
    """
    blob = read_container(opened.content, kind, ModelManifest)
    return verify_model(opened, blob, parts_of, make_device, check_versions)


def verify_model(
    opened: BlobBytes,
    blob: Container[ModelManifest],
    parts_of: Callable[[Options], Sequence[str]],
    make_device: Callable[[Options], Device],
    check_versions: Callable[[Mapping[str, str], Mapping[str, str]], object],
) -> ImportedBlob:
    """Verify a blob against the installation and the request.

    Args:
        opened: its bytes.
        blob: the container in these bytes.
        parts_of: returns the expected programs, by options; weights may follow them.
        make_device: returns the device that options name.
        check_versions: compares the blob's versions with the installed ones.

    Raises:
        BlobVersionError: other versions, or another device, made the blob.
        BlobError: the blob is damaged, or has other programs than expected.
        OptionError: an option contradicts the blob, or no option locates its weights.
        ModelError: the available weights are not those of the blob's model.
    """
    check_versions(blob.manifest.versions, own_version())
    options = _join_options(blob.manifest.options, opened.config)
    names = _names(parts_of, options, blob.manifest.options)
    device = make_device(options)
    check_device(device, options)
    check_versions(blob.manifest.versions, current_versions(device, options))
    found = [part.name for part in blob.manifest.parts]
    if found not in ([*names], [*names, PART]):
        raise BlobError(f"its programs are {', '.join(found)}, not {', '.join(names)}")
    _verify(blob, opened.path, KnownFiles(options.cache_folder))
    files = replace(
        verified_weights(blob.manifest.files, options, opened.model), model=blob.manifest.model
    )
    return ImportedBlob(blob, options, device, files)


def _join_options(fixed: Mapping[str, str], config: Mapping[str, Any]) -> Options:
    """Join the blob's options with those of this run.

    Raises:
        BlobError: the blob's options are wrong.
        OptionError: this run's options are wrong, or contradict the blob's.
    """
    given = parse_options(config)
    check_options(given)
    run_time = {name: value for name, value in config.items() if name in RUN_TIME}
    if "NPU_PLATFORM" not in fixed and "NPU_PLATFORM" in config:
        run_time["NPU_PLATFORM"] = config["NPU_PLATFORM"]
    foreign = sorted(fixed.keys() & RUN_TIME)
    if foreign or is_own_platform(fixed):
        raise BlobError(f"it sets {', '.join(foreign) or 'NPU_PLATFORM'}, which no blob may set")
    try:
        options = parse_options(fixed)
    except OptionError as error:
        raise BlobError(f"its options are wrong: {error}") from None
    maps = {name: getattr(options, NAMES[name]) for name in MAPS}
    foreign = [f"{inner} of {name}" for name in MAPS for inner in run_time_part(maps[name])]
    if foreign:
        raise BlobError(f"it sets {', '.join(foreign)}, which no blob may set")
    wrong = [
        f"{name} = {getattr(given, NAMES[name])!r} (the blob has {getattr(options, NAMES[name])!r})"
        for name in config
        if name not in run_time and _contradicts(name, given, options)
    ]
    if wrong:
        raise OptionError(
            f"options fixed when the blob was compiled contradict {', '.join(wrong)}; leave it "
            "out, or export the blob again"
        )
    for name in MAPS:
        if of_run := run_time_part(getattr(given, NAMES[name])):
            run_time[name] = maps[name] | of_run
    return parse_options({**fixed, **run_time})


def _contradicts(name: str, given: Options, options: Options) -> bool:
    """Return whether an option of this run contradicts the blob's."""
    mine, theirs = (getattr(each, NAMES[name]) for each in (given, options))
    if name not in MAPS:
        return mine != theirs
    fixed = fixed_part(mine)  # a map may have only settings of this run
    return bool(fixed) and fixed != fixed_part(theirs)


def check_versions(found: Mapping[str, str], ours: Mapping[str, str]) -> None:
    """Compare a blob's versions with the installed ones.

    Raises:
        BlobVersionError: one of them differs.
    """
    for what, version in ours.items():
        if found.get(what) != version:
            raise BlobVersionError(what, found.get(what, "none"), version)


def _verify(blob: Container[ModelManifest], path: Path | None, known: KnownFiles) -> None:
    """Verify all bytes that loading reads; also constants that are not known to be intact."""
    blob.check_programs()
    if not blob.has_constants:
        return
    status = None if path is None else path.stat()
    if path is not None and status is not None and known.recall(path, status) == blob.digest:
        return
    blob.check_constants()
    if path is not None and status is not None:
        known.learn(path, status, blob.digest)


def _names(
    parts_of: Callable[[Options], Sequence[str]], options: Options, fixed: Mapping[str, str]
) -> Sequence[str]:
    """Return the names of the expected programs.

    Raises:
        BlobError: the blob's options contradict one another.
        OptionError: this run's options contradict the blob's.
    """
    try:
        return parts_of(options)
    except OptionError:
        try:
            parts_of(parse_options(fixed))
        except OptionError as error:
            raise BlobError(f"its options are wrong: {error}") from None
        raise
