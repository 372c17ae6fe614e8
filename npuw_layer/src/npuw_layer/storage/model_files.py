"""A model's files: as they were at compilation, and those that a blob without weights needs."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from compiler_layer.errors import CompilerError
from compiler_layer.weights import WEIGHT_PREFIX, WeightRef
from driver_layer.support.files import looking_at
from npuw_layer.backends.protocols import LoadedModel
from npuw_layer.errors import ModelError, OptionError
from npuw_layer.options import Options
from npuw_layer.storage.cache.known_files import KnownFiles, Seen, seen
from npuw_layer.storage.cache.model_digest import digest_files, join_digests
from npuw_layer.storage.memory_model import MemoryModel, model_in
from npuw_layer.weights.stored_weights import StoredWeights


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """Files by name, and the file system's record of each."""

    folder: Path
    statuses: dict[str, Seen]
    model: str = ""
    """Model identity from a blob, which may need only some of the model's files."""
    memory: MemoryModel | None = field(default=None, compare=False, repr=False)
    """Model in memory whose files these are, which exist as long as it does; else None."""

    @staticmethod
    def look(files: Iterable[Path], folder: Path) -> ModelFiles:
        """Record the current status of files.

        Raises:
            ModelError: a file is missing.
        """
        try:
            statuses = {file.name: seen(file.stat()) for file in files}
            return ModelFiles(folder, statuses, memory=model_in(folder))
        except OSError as error:
            raise ModelError(f"{error.filename}: {error.strerror}") from None

    def read_digest(self, known: KnownFiles) -> str:
        """Hash the current content of all files.

        Raises:
            ModelError: a file cannot be read.
        """
        return join_digests(digest_files([self.folder / name for name in self.statuses], known))

    def identity(self, known: KnownFiles) -> str:
        """Return the model's identity, independent of the model's source.

        Raises:
            ModelError: a file cannot be read.
        """
        return self.model or self.read_digest(known)

    def digests(self, names: Iterable[str], known: KnownFiles) -> dict[str, str]:
        """Hash some of the files.

        Raises:
            ModelError: a file has changed.
        """
        named = sorted(names)
        found = digest_files([self.folder / name for name in named], known)
        self.check(named)
        return found

    def check(self, names: Iterable[str]) -> None:
        """Check that some of the files are unchanged.

        Raises:
            ModelError: a file has changed.
        """
        now = ModelFiles.look([self.folder / name for name in names], self.folder).statuses
        for name, status in now.items():
            if self.statuses.get(name) != status:
                raise ModelError(f"{self.folder / name} changed after compilation; compile again")


@dataclass(frozen=True, slots=True)
class WeightSources:
    """Sources of a compiled model's weights.

    Attributes:
        files: the model's files that are needed.
        stored: weights that came with the programs; None without any.
        changes: identity of changes to the weights; empty if they are the model's own.
    """

    files: ModelFiles
    stored: StoredWeights | None
    changes: str = ""

    def read_digest(self, known: KnownFiles) -> str:
        """Return a digest that identifies the weights.

        Raises:
            ModelError: a file cannot be read.
        """
        return self.files.read_digest(known) + (self.stored.digest if self.stored else "")

    def hashing(self, cache_folder: Path | None) -> Callable[[], str]:
        """Return a callable of ``read_digest`` that keeps digests in a cache folder."""
        return partial(self.read_digest, KnownFiles(cache_folder))

    def identity(self, known: KnownFiles) -> str:
        """Return the model's identity, including changes; errors as ``ModelFiles.identity``."""
        model = self.files.identity(known)
        return join_digests({"model": model, "changes": self.changes}) if self.changes else model


def needed_files(programs: Iterable[LoadedModel], stored: Container[str] = ()) -> set[str]:
    """Return the names of the files that programs read their weights from.

    Args:
        programs: loaded programs.
        stored: names of weights that are not read from files.

    Raises:
        ModelError: an input's name is not a valid weight reference.
    """
    names = {info.name for program in programs for info in program.inputs}
    return weight_files(
        name for name in names if name.startswith(WEIGHT_PREFIX) and name not in stored
    )


def weight_files(weights: Iterable[str]) -> set[str]:
    """Return the names of the files that contain weights.

    Raises:
        ModelError: a name is not a valid weight reference.
    """
    try:
        return {WeightRef.parse(name).file for name in weights}
    except CompilerError as error:
        raise ModelError(str(error)) from error


def verified_weights(
    digests: Mapping[str, str], options: Options, model: Path | None
) -> ModelFiles:
    """Find the weight files, and verify their digests.

    Args:
        digests: SHA-256 of each file, by name.
        options: options that locate the files.
        model: the source model; None if it is not available.

    Raises:
        OptionError: no option locates the files.
        ModelError: files are missing, or have other digests.
    """
    files = named_weights(digests, options, model)
    paths = [files.folder / name for name in digests]
    for name, digest in digest_files(paths, KnownFiles(options.cache_folder)).items():
        if digest != digests[name]:
            raise ModelError(
                f"{files.folder / name} differs from the file at the blob's compilation"
            )
    return files


def named_weights(names: Iterable[str], options: Options, model: Path | None) -> ModelFiles:
    """Find the weight files by name, without a check of their content.

    Raises:
        OptionError: no option locates the files.
        ModelError: files are missing.
    """
    wanted = list(names)
    if not wanted:
        return ModelFiles(Path(), {})
    place = options.weights_path or options.model_ptr or model
    if not place:
        raise OptionError(
            f"the blob contains no weights ({', '.join(wanted)}); set WEIGHTS_PATH to the model's "
            "weights, or MODEL_PTR to the model"
        )
    path = Path(place).expanduser()
    with looking_at(path, ModelError):
        folder = path if path.is_dir() else path.parent
        is_file = path.is_file()
    if options.weights_path and is_file and path.name not in wanted:
        raise ModelError(
            f"WEIGHTS_PATH {path}: the blob was compiled from {', '.join(wanted)}; pass that file "
            "or its folder"
        )
    return ModelFiles.look([folder / name for name in wanted], folder)
