"""Names of the inputs by which a weightless blob requests its weights.

In a weightless blob every weight is an input whose name encodes the location of its bytes. The
runtime reads the weights once, for all blobs of a model, and binds them.

Source: the prefix is that of npu_compiler's separated weights.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

from compiler_layer.elements import NUMPY, stored_bytes
from compiler_layer.errors import BadModel, CompilerUsageError
from compiler_layer.files import FileView

WEIGHT_PREFIX = "vpux_ow_"
"""Prefix of the name of a weight's input."""

_NAME = re.compile(
    rf"{WEIGHT_PREFIX}(?P<offset>\d{{1,19}})_(?P<size>\d{{1,19}})_(?P<stored>\w+)_(?P<element>\w+)@(?P<file>.+)"
)


@dataclass(frozen=True, slots=True)
class WeightRef:
    """Weight: bytes of a file, the type they hold, and the type that the blob reads."""

    file: str
    """File name without folders; the file is in the model's folder."""
    offset: int
    size: int
    stored: str
    element: str

    @staticmethod
    def of(view: FileView, element: str) -> WeightRef:
        """Create a reference to a constant's view."""
        return WeightRef(Path(view.path).name, view.offset, view.size, view.element, element)

    @property
    def name(self) -> str:
        """Name of the input."""
        place = f"{self.offset}_{self.size}_{self.stored}_{self.element}"
        return f"{WEIGHT_PREFIX}{place}@{self.file}"

    @staticmethod
    def parse(name: str) -> WeightRef:
        """Parse an input's name, which may come from a damaged blob.

        Raises:
            CompilerUsageError: the name is not that of a weight, or the weight is outside the
                model's folder.
        """
        found = _NAME.fullmatch(name)
        if found is None or Path(found["file"]).name != found["file"]:
            raise CompilerUsageError(f"{name!r} is not the name of a weight")
        if found["stored"] not in NUMPY or found["element"] not in NUMPY:
            raise CompilerUsageError(f"{name!r} has an unknown element type")
        offset, size = int(found["offset"]), int(found["size"])
        return WeightRef(found["file"], offset, size, found["stored"], found["element"])

    def check(self, folder: Path, shape: tuple[int, ...]) -> None:
        """Check that the file contains the weight.

        Raises:
            BadModel: the file is missing or too short, or the weight has another size.
        """
        path = folder / self.file
        if self.size != stored_bytes(self.stored, math.prod(shape)):
            raise BadModel(
                path, f"{self.size} bytes for {self.stored} {list(shape)}; compile the blob again"
            )
        self._view(folder).check()

    def read(self, folder: Path, shape: tuple[int, ...]) -> memoryview | bytes:
        """Return the bytes that the blob reads, without a copy if the type stays the same.

        Raises:
            BadModel: see ``check``.
        """
        self.check(folder, shape)
        return self._view(folder).stored(self.element, shape)

    def _view(self, folder: Path) -> FileView:
        return FileView(str(folder / self.file), self.offset, self.size, self.stored)
