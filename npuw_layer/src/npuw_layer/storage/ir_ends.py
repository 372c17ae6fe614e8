"""Inputs and outputs of an IR's model, found without reading the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from driver_layer.support.files import open_regular

Dims = tuple[str, ...]
"""Dimensions as text from the file: ``?``, ``-1`` or a range if dynamic."""

_CHUNK = 1 << 16
_VARIABLES = {"ReadValue", "Assign"}


@dataclass(slots=True)
class Ends:
    """Inputs and outputs of the model itself, not of the bodies of its loops.

    Attributes:
        inputs, outputs: dimensions by the layers' names.
        has_state: whether the model has variables.
    """

    inputs: dict[str, Dims] = field(default_factory=dict[str, Dims])
    outputs: dict[str, Dims] = field(default_factory=dict[str, Dims])
    has_state: bool = False


def ir_ends(path: Path) -> Ends:
    """Scan an IR's XML.

    A broken file has fewer ends; the model's reader reports the error.
    """
    scan = _Scan()
    for _ in _progress(scan, path):
        pass
    return scan.found


def ir_inputs(path: Path) -> Iterator[tuple[str, Dims]]:
    """Yield inputs with their dimensions; reading continues as the caller iterates."""
    scan, seen = _Scan(), 0
    for _ in _progress(scan, path):
        inputs = list(scan.found.inputs.items())
        yield from inputs[seen:]
        seen = len(inputs)


def _progress(scan: _Scan, path: Path) -> Iterator[None]:
    """Yield after each scanned chunk of a file."""
    try:
        with open_regular(path) as file:
            while chunk := file.read(_CHUNK):
                scan.parser.Parse(chunk)
                yield
    except (expat.ExpatError, OSError, LookupError, ValueError):
        yield  # LookupError and ValueError: an unknown or violated encoding


class _Scan:
    """A scan for parameters, results and variables in an IR's XML."""

    def __init__(self) -> None:
        self.found = Ends()
        self._depth = 0
        """Nesting of layer lists: bodies have their own lists."""
        self._kind, self._name = "", ""
        """Type and name of the model's layer being read."""
        self._dims: list[str] = []
        self._text: list[str] | None = None
        """Text of the dimension being read."""
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._read
        self.parser.StartDoctypeDeclHandler = self._refuse

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += tag == "layers"
        if self._depth != 1:
            return
        if tag == "layer":
            self._kind, self._name = attributes.get("type", ""), attributes.get("name", "")
            self._dims = []
            self.found.has_state |= self._kind in _VARIABLES
        elif tag == "data" and self._kind == "Parameter":
            shape = attributes.get("shape", "").split(",")
            self.found.inputs[self._name] = tuple(dim.strip() for dim in shape if dim.strip())
        elif tag == "dim" and self._kind == "Result":
            self._text = []

    def _end(self, tag: str) -> None:
        self._depth -= tag == "layers"
        if tag == "dim" and self._text is not None:
            self._dims.append("".join(self._text).strip())
            self._text = None
        elif tag == "layer" and self._kind == "Result" and self._depth == 1:
            self.found.outputs[self._name] = tuple(self._dims)

    def _read(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _refuse(self, *_: object) -> None:
        raise ValueError("a document type")  # the model's reader reports the reason
