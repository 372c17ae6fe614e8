"""Values that stay in a model's files, which are memory-mapped and never copied.

This module does not depend on graphs: a runtime reads weights without loading the compiler.
"""

from __future__ import annotations

import contextlib
import math
import mmap
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from compiler_layer.elements import Array, convert_values, from_bytes, to_bytes
from compiler_layer.errors import BadModel
from driver_layer.support.files import open_regular
from driver_layer.support.mapped_file import MappedFile

_HUGE_PAGES: int | None = getattr(mmap, "MADV_HUGEPAGE", None)
"""Advice to use large pages, which Linux supports for files read for the first time. Each token
reads all weights sequentially; large pages make that a tenth faster."""


@dataclass(frozen=True, slots=True)
class FileView:
    """Bytes ``offset`` to ``offset + size`` of a file, with elements of a type.

    A reader may request another type; the values are then converted.
    """

    path: str
    offset: int
    size: int
    element: str

    @property
    def whole(self) -> memoryview:
        """All bytes of the file, mapped.

        Raises:
            BadModel: the file cannot be read.
        """
        return mapped_file(self.path)

    @property
    def raw(self) -> memoryview:
        """Bytes of the view, in the mapped file.

        Raises:
            BadModel: as ``check``.
        """
        self.check()
        return self.whole[self.offset : self.offset + self.size]

    def check(self) -> None:
        """Check that the file contains the bytes.

        Raises:
            BadModel: the file cannot be read, or is too short.
        """
        length, end = len(self.whole), self.offset + self.size
        if not 0 <= self.offset <= end <= length:
            raise BadModel(self.path, f"a weight ends at byte {end}, but the file has {length}")

    def load(self, element: str, shape: tuple[int, ...]) -> Array:
        """Return the values in a type, read-only; only accessed pages are read."""
        held = from_bytes(self.raw, self.element, math.prod(shape)).reshape(shape)
        return convert_values(held, self.element, element)

    def stored(self, element: str, shape: tuple[int, ...]) -> memoryview | bytes:
        """Return the memory representation in a type; no copy if the file has that type."""
        if element == self.element:
            return self.raw
        return to_bytes(self.load(element, shape), element)


@dataclass(frozen=True, slots=True)
class MemoryView(FileView):
    """View of a model's weights that are in memory instead of in a file.

    ``path`` names the weights in errors; views of different buffers need different names.
    """

    buffer: memoryview = field(compare=False, repr=False)

    @property
    def whole(self) -> memoryview:
        """The buffer."""
        return self.buffer


def mapped_file(path: str) -> memoryview:
    """Map a file read-only; a file that has changed in the meantime is mapped again.

    Raises:
        BadModel: the file cannot be read.
    """
    try:
        status = Path(path).stat()
        times = status.st_mtime_ns, status.st_ctime_ns
        return _map(path, status.st_dev, status.st_ino, status.st_size, times)
    except (OSError, ValueError) as error:
        raise BadModel(path, f"the weights cannot be read: {error}") from None


def unmap_unused() -> None:
    """Unmap the files that nobody holds; the next reader of a file maps it again."""
    _map.cache_clear()


@lru_cache(maxsize=64)
def _map(path: str, *status: object) -> memoryview:
    del status  # It only distinguishes versions of a file.
    with open_regular(path) as file:
        whole = MappedFile.of(file)
    if _HUGE_PAGES is not None:
        with contextlib.suppress(OSError):  # the kernel may be built without huge pages
            whole.madvise(_HUGE_PAGES)
    return memoryview(whole)
