"""Compiled programs on disk: the second start compiles nothing.

An entry is a container of one program that also lists all the program's dependencies. A process
that finds no entry holds a lock while it compiles one, so that one of several processes compiles
and the others wait. A damaged entry, or one that does not match its name, is never used: it is
compiled again.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from driver_layer.support.files import open_regular
from npuw_layer.backends.mapped import map_file
from npuw_layer.errors import BlobError, NpuwFault, NpuwUsageError, OptionError
from npuw_layer.storage.cache.key import MODEL, VERSIONS, CacheKey
from npuw_layer.storage.cache.key import STAGE as STAGE_PART
from npuw_layer.storage.cache.known_files import KnownFiles, Seen, seen
from npuw_layer.storage.cache.lock import locked
from npuw_layer.storage.cache.replace import lock_of, remove_leftovers, replacing
from npuw_layer.storage.container import (
    STAGE,
    Span,
    describe,
    read_container,
)
from npuw_layer.storage.encryption import OPTION, Callbacks, decrypt, is_encrypted, write_programs
from npuw_layer.storage.manifest import EntryManifest

_log = logging.getLogger(__name__)

T = TypeVar("T")

SUFFIX = ".blob"

_OURS = re.compile(r"[0-9a-f]{12}-[0-9a-f]{40}\.blob|[0-9a-f]{32}\.digest")
"""Names of entries and digests; the folder may contain other files, which are left alone."""


@dataclass(frozen=True, slots=True)
class Obtained:
    """A program and its origin, as readable text."""

    program: bytes | memoryview
    compiled: bool
    how: str
    entry: Seen | None = None
    """File of the entry; None if the program was compiled."""


@dataclass(frozen=True, slots=True)
class Refused:
    """An intact entry whose program cannot be used."""

    entry: Seen | None
    """File of the entry."""
    why: str


@dataclass(frozen=True, slots=True)
class _Reason:
    """Reason to compile a program, and whether to log a warning."""

    text: str
    warn: bool = False


class BlobCache:
    """Programs in a folder.

    Args:
        folder: created if missing.
        constants: returns a program's spans that are used in place, and so need not be read.
        callbacks: encrypt and decrypt entries; with callbacks, unencrypted entries are not used.

    Raises:
        NpuwFault: the folder cannot be created.
    """

    def __init__(
        self,
        folder: Path,
        constants: Callable[[bytes | memoryview], Sequence[Span]],
        callbacks: Callbacks = (),
    ) -> None:
        self._folder = folder
        self._callbacks = callbacks
        self._constants = constants
        self._known = KnownFiles(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            left = remove_leftovers(folder, _OURS.fullmatch)
        except OSError as error:
            raise NpuwFault(f"CACHE_DIR {folder}: {error.strerror}") from None
        if left:
            _log.info("CACHE_DIR %s: %d files of killed processes deleted", folder, len(left))

    def obtain(
        self,
        label: str,
        key: CacheKey,
        make: Callable[[], bytes | memoryview],
        refused: Refused | None = None,
    ) -> Obtained:
        """Return a program from its entry, or compile it; one process compiles while others wait.

        Args:
            label: the program's name in the log.
            key: the program's dependencies.
            make: compiles the program.
            refused: an entry to replace instead of returning it.
        """
        found, _ = self._find(key, refused)
        if found is not None:
            return found
        began = time.perf_counter()
        owners: list[str] = []

        def wait_for(owner: str) -> None:
            owners.append(owner)
            _log.info("%s: waiting for %s, which is compiling it", label, owner)

        with locked(lock_of(self._path(key)), wait_for):
            waited = ""
            if owners:
                waited = f", waited {time.perf_counter() - began:.2f} s for {owners[0]}"
            found, reason = self._find(key, refused)
            if found is not None:
                return replace(found, how=f"{found.how}{waited}")
            if reason.warn:
                _log.warning("%s: %s; it is compiled again", label, reason.text)
            _log.info("%s: compiling: %s%s", label, reason.text, waited)
            made = make()
            self._write(label, key, made)
        return Obtained(made, True, f"compiled{waited}")

    def load(
        self,
        label: str,
        key: CacheKey,
        make: Callable[[], bytes | memoryview],
        use: Callable[[bytes | memoryview], T],
    ) -> tuple[Obtained, T]:
        """Obtain a program and use it; replace the entry if its program fails.

        Args:
            label: the program's name in the log.
            key: the program's dependencies.
            make: compiles the program.
            use: uses the program, e.g. loads it.

        Raises:
            NpuwUsageError: as ``use``; a program compiled again would fail, too.
            RuntimeError: as ``use`` with a program that was just compiled, or as ``make``.
        """
        obtained = self.obtain(label, key, make)
        try:
            return obtained, use(obtained.program)
        except NpuwUsageError:
            raise
        except RuntimeError as error:
            if obtained.entry is None:
                raise
            refused = Refused(obtained.entry, str(error))
        obtained = self.obtain(label, key, make, refused)
        return obtained, use(obtained.program)

    def _find(self, key: CacheKey, refused: Refused | None) -> tuple[Obtained | None, _Reason]:
        """Return an intact program of this key, or None and the reason."""
        path = self._path(key)
        try:
            with open_regular(path) as file:
                status = os.fstat(file.fileno())
                content = map_file(file)
        except FileNotFoundError:
            return None, self._why_missing(key)
        except (OSError, ValueError) as error:
            return None, _Reason(f"{path} cannot be read: {error}", True)
        if refused is not None and refused.entry == seen(status):
            return None, _Reason(f"{path} is intact, but cannot be used: {refused.why}", True)
        try:
            program = self._check(path, status, content, key)
            return Obtained(program, False, "from cache", seen(status)), _Reason("")
        except BlobError as error:
            return None, _Reason(f"{path} is not used: {error}", True)

    def _check(
        self, path: Path, status: os.stat_result, content: memoryview, key: CacheKey
    ) -> memoryview:
        """Verify an entry and return its program.

        Raises:
            BlobError: the entry is damaged or of another key, or its encryption is not as required.
        """
        if self._callbacks and not is_encrypted(content):
            raise BlobError(f"it is not encrypted, but {OPTION} is set")
        entry = read_container(decrypt(content, self._callbacks), STAGE, EntryManifest)
        different = key.differences(entry.manifest.key)
        if different:
            raise BlobError(f"it was compiled for other {_listed(different)}")
        if len(entry.programs) != 1:
            raise BlobError(f"it has {len(entry.programs)} programs instead of one")
        entry.check_programs()
        if entry.has_constants and self._known.recall(path, status) != entry.digest:
            entry.check_constants()
            self._known.learn(path, status, entry.digest)
        return entry.programs[0]

    def _write(self, label: str, key: CacheKey, program: bytes | memoryview) -> None:
        """Store a program; a full or read-only disk only causes a warning."""
        path = self._path(key)
        part = describe(label, program, self._constants(program))
        manifest = EntryManifest(parts=(part,), key=key.parts)
        digest = ""

        def learn(status: os.stat_result) -> None:
            if part.constants:
                self._known.learn_own(path, status, digest)

        try:
            with replacing(path, learn) as file:
                digest = write_programs(file, STAGE, manifest, [program], self._callbacks)
        except (OSError, OptionError) as error:
            what = error.strerror if isinstance(error, OSError) else error
            _log.warning("CACHE_DIR %s: %s; the program is not cached", self._folder, what)

    def _why_missing(self, key: CacheKey) -> _Reason:
        """Find this model's most similar entry, to report the differences."""
        nearest: dict[str, tuple[str, str]] | None = None
        for path in self._folder.glob(f"{key.model}-*{SUFFIX}"):
            try:
                with open_regular(path) as file:
                    found = read_container(map_file(file), STAGE, EntryManifest).manifest.key
            except (OSError, ValueError, BlobError):
                continue
            different = key.differences(found)
            another_stage = any(name.startswith(STAGE_PART) for name in different)
            if not another_stage and (nearest is None or len(different) < len(nearest)):
                nearest = different
        if not nearest:
            return _Reason("no entry exists")
        if nearest.keys() <= VERSIONS:
            return _Reason(f"the existing entry was compiled for other {_listed(nearest)}", True)
        return _Reason(f"the nearest entry has other {_listed(nearest)}")

    def _path(self, key: CacheKey) -> Path:
        return self._folder / f"{key.name}{SUFFIX}"


def _listed(different: dict[str, tuple[str, str]]) -> str:
    parts = [
        name if name == MODEL else f"{name} ({theirs or 'none'}, now {ours or 'none'})"
        for name, (theirs, ours) in different.items()
    ]
    return ", ".join(parts)
