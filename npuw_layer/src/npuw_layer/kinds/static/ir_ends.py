"""What goes into an IR's model and comes out of it, without reading the model."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from driver_layer.regular_file import open_regular

Dims = tuple[str, ...]
"""Dimensions as the file has them: ``?``, ``-1`` or a range where they are open."""

_VARIABLES = {"ReadValue", "Assign"}


@dataclass(slots=True)
class Ends:
    """Of the model itself, not of bodies of its loops.

    Attributes:
        inputs, outputs: dimensions by the layers' names.
        has_state: whether it has variables.
    """

    inputs: dict[str, Dims] = field(default_factory=dict[str, Dims])
    outputs: dict[str, Dims] = field(default_factory=dict[str, Dims])
    has_state: bool = False


def ir_ends(path: Path) -> Ends:
    """Look through an IR's XML.

    Of a broken file there is less than it should have: whoever reads the model says what is wrong.
    """
    scan = _Scan()
    try:
        with open_regular(path) as file:
            scan.parser.ParseFile(file)
    except (expat.ExpatError, OSError, LookupError, ValueError):
        pass  # LookupError and ValueError: an encoding that is not known, or not kept to
    return scan.found


class _Scan:
    """Looks for parameters, results and variables in an IR's XML."""

    def __init__(self) -> None:
        self.found = Ends()
        self._depth = 0
        """Of lists of layers: bodies have lists of their own."""
        self._kind, self._name = "", ""
        """Of the model's layer that is being read."""
        self._dims: list[str] = []
        self._text: list[str] | None = None
        """Of the dimension that is being read."""
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
        raise ValueError("a document type")  # the reader will say why
