"""A model's files as they were when it was compiled: what is exported must still be of them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from compiler_layer.errors import CompilerError
from compiler_layer.weights import WEIGHT_PREFIX, WeightRef
from npuw_layer.backends.protocols import LoadedModel
from npuw_layer.errors import ModelError
from npuw_layer.storage.cache.known_files import KnownFiles, Seen, seen
from npuw_layer.storage.cache.model_digest import digest_files, join_digests
from npuw_layer.weights.stored_weights import StoredWeights


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """Files by name, and what the file system said of each."""

    folder: Path
    statuses: dict[str, Seen]
    model: str = ""
    """What tells the model from others, if a blob said it: here may be some of its files alone."""

    @staticmethod
    def look(files: Iterable[Path], folder: Path) -> ModelFiles:
        """See how files are now.

        Raises:
            ModelError: one is not there.
        """
        try:
            return ModelFiles(folder, {file.name: seen(file.stat()) for file in files})
        except OSError as error:
            raise ModelError(f"{error.filename}: {error.strerror}") from None

    def read_digest(self, known: KnownFiles) -> str:
        """Hash all of them as they are now.

        Raises:
            ModelError: one cannot be read.
        """
        return join_digests(digest_files([self.folder / name for name in self.statuses], known))

    def identity(self, known: KnownFiles) -> str:
        """Tell the model from others, the same wherever it came from.

        Raises:
            ModelError: a file cannot be read.
        """
        return self.model or self.read_digest(known)

    def digests(self, names: Iterable[str], known: KnownFiles) -> dict[str, str]:
        """Hash some of the files.

        Raises:
            ModelError: one is not as it was.
        """
        named = sorted(names)
        found = digest_files([self.folder / name for name in named], known)
        self.check(named)
        return found

    def check(self, names: Iterable[str]) -> None:
        """See that some of the files are as they were.

        Raises:
            ModelError: one is not.
        """
        now = ModelFiles.look([self.folder / name for name in names], self.folder).statuses
        for name, status in now.items():
            if self.statuses.get(name) != status:
                raise ModelError(f"{self.folder / name} has changed since it was compiled")


@dataclass(frozen=True, slots=True)
class WeightSources:
    """Where the weights of a compiled model are.

    Attributes:
        files: the model's, as far as they are needed.
        stored: those that came with the programs.
        changes: what tells them from the model's own, if programs have others.
    """

    files: ModelFiles
    stored: StoredWeights | None
    changes: str = ""

    def read_digest(self, known: KnownFiles) -> str:
        """Give what tells the weights from others.

        Raises:
            ModelError: a file cannot be read.
        """
        return self.files.read_digest(known) + (self.stored.digest if self.stored else "")

    def hashing(self, cache_folder: Path | None) -> Callable[[], str]:
        """Return what calls ``read_digest``, with digests that a cache's folder keeps."""
        return partial(self.read_digest, KnownFiles(cache_folder))

    def identity(self, known: KnownFiles) -> str:
        """Tell the model from others; as ``ModelFiles.identity``, and by what was changed."""
        model = self.files.identity(known)
        return join_digests({"model": model, "changes": self.changes}) if self.changes else model


def needed_files(programs: Iterable[LoadedModel], stored: Container[str] = ()) -> set[str]:
    """Give the names of the files that programs read their weights from.

    Args:
        programs: loaded ones.
        stored: the weights that are elsewhere.

    Raises:
        ModelError: an input does not say where its weight is.
    """
    names = {info.name for program in programs for info in program.inputs}
    return weight_files(
        name for name in names if name.startswith(WEIGHT_PREFIX) and name not in stored
    )


def weight_files(weights: Iterable[str]) -> set[str]:
    """Give the names of the files that weights are in.

    Raises:
        ModelError: a name does not say where its weight is.
    """
    try:
        return {WeightRef.parse(name).file for name in weights}
    except CompilerError as error:
        raise ModelError(str(error)) from error
