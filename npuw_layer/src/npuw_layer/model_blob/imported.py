"""What every imported model has in common; its file may come from anywhere and is not believed.

Source: fact sheet npuw §d, §f 23 and 27 to 29; genai §c.2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from npuw_layer.blob.container import Container, read_container
from npuw_layer.blob.encryption import decrypt
from npuw_layer.blob.manifest import ModelManifest
from npuw_layer.blob.source import Source, open_blob
from npuw_layer.cache.key import current_versions, own_version
from npuw_layer.cache.known_files import KnownFiles
from npuw_layer.cache.model_digest import digest_files
from npuw_layer.errors import BlobError, BlobVersionError, DeviceError, ModelError, OptionError
from npuw_layer.llm.model_files import ModelFiles, needed_files
from npuw_layer.llm.programs import load
from npuw_layer.model_blob.checks import check_device, check_options, is_own_platform
from npuw_layer.options import NAMES, RUN_TIME, Options, parse_options
from npuw_layer.ports import Device, LoadedModel
from npuw_layer.stored_weights import PART, StoredWeights, WantedWeights


@dataclass(frozen=True, slots=True)
class BlobBytes:
    """A blob in clear, whatever kind of model it has.

    Attributes:
        content: all of its bytes.
        path: the file that they are all of, if they are one.
        config: the options of this run.
        model: the model that it was made of, if that is at hand.
    """

    content: memoryview
    path: Path | None
    config: Mapping[str, Any]
    model: Path | None

    @property
    def name(self) -> str:
        """What errors call it."""
        return str(self.path or "the blob")

    @staticmethod
    def open(source: Source, config: Mapping[str, Any], model: Path | None) -> BlobBytes:
        """Open a blob, and decrypt it if it is encrypted.

        Args:
            source: a path, a stream or bytes; a file is mapped, not copied.
            config: the options of this run.
            model: the model that it was made of, if that is at hand.

        Raises:
            BlobError: it cannot be read, or decrypted.
            OptionError: options are wrong, or do not allow blobs.
        """
        given = parse_options(config)
        if given.untrusted_source:
            raise OptionError(
                "NPU_UNTRUSTED_SOURCE = YES: blobs of NPUW are imported from trusted sources alone"
            )
        content, path = open_blob(source)
        found = BlobBytes(content, path, config, model)
        with found.named():
            return replace(found, content=decrypt(content, given.encryption))

    @contextmanager
    def named(self) -> Generator[None, None, None]:
        """Let errors say which blob they are about."""
        try:
            yield
        except BlobVersionError as error:
            raise BlobVersionError(error.what, error.found, error.needed, self.name) from None
        except BlobError as error:
            raise BlobError(f"{self.name}: {error}") from None
        except DeviceError as error:
            raise DeviceError(f"{self.name}: {error}") from error


@dataclass(frozen=True, slots=True)
class ImportedBlob:
    """A blob whose programs are whole, and fit what is installed and asked for.

    Attributes:
        blob: its manifest and programs.
        options: those of the blob, and of this run.
        device: what they ask for.
        files: those that hold its weights.
    """

    blob: Container[ModelManifest]
    options: Options
    device: Device
    files: ModelFiles

    def load(self, name: str, program: bytes | memoryview) -> LoadedModel:
        """Load a program, which there is nothing to make anew from.

        Raises:
            DeviceError: the device refuses it.
        """
        try:
            return load(self.device, program)
        except RuntimeError as error:
            what = f"the device refuses {name}: {error}; export the model anew"
            raise DeviceError(what) from error

    def stored(self, wanted: WantedWeights | None) -> StoredWeights | None:
        """Take the weights that are in the blob.

        Raises:
            BlobError: they are not those that should be.
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
        """See that the manifest names all files that programs read.

        Raises:
            BlobError: one is missing.
        """
        if not needed_files(loaded, stored or ()) <= self.files.statuses.keys():
            raise BlobError("a program needs files that the manifest does not name")


def read_model_blob(
    opened: BlobBytes,
    kind: bytes,
    parts_of: Callable[[Options], Sequence[str]],
    make_device: Callable[[Options], Device],
) -> ImportedBlob:
    """Verify a blob against what is installed and asked for.

    Args:
        opened: its bytes.
        kind: of ``blob.container``.
        parts_of: the programs that there should be, by options; weights may follow them.
        make_device: gives the device that options name.

    Raises:
        BlobVersionError: other versions, or another device, made it.
        BlobError: it is damaged, or not what it should be.
        OptionError: an option contradicts it, or its weights are nowhere.
        ModelError: the weights at hand are not those that it was made of.
    """
    blob = read_container(opened.content, kind, ModelManifest)
    _check_versions(blob.manifest.versions, own_version())
    options = _join_options(blob.manifest.options, opened.config)
    names = _names(parts_of, options)
    device = make_device(options)
    check_device(device, options)
    _check_versions(blob.manifest.versions, current_versions(device, options))
    _check_names(blob, names)
    _verify(blob, opened.path, KnownFiles(_folder(options)))
    files = replace(
        _find_weights(blob.manifest.files, options, opened.model), model=blob.manifest.model
    )
    return ImportedBlob(blob, options, device, files)


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


def _names(parts_of: Callable[[Options], Sequence[str]], options: Options) -> Sequence[str]:
    """The programs that there should be.

    Raises:
        BlobError: the blob's options contradict one another.
    """
    try:
        return parts_of(options)
    except OptionError as error:
        raise BlobError(f"its options are wrong: {error}") from None


def _check_names(blob: Container[ModelManifest], expected: Sequence[str]) -> None:
    """A blob has just the programs that there should be, and maybe weights behind them.

    Raises:
        BlobError: it has others.
    """
    found = [part.name for part in blob.manifest.parts]
    if found not in ([*expected], [*expected, PART]):
        raise BlobError(f"its programs are {', '.join(found)}, not {', '.join(expected)}")


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
