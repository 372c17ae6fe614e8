"""Names and dimensions of an IR's inputs, without reading the model: they tell its kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.parsers import expat

from driver_layer.regular_file import open_regular

_CHUNK = 1 << 16


def ir_inputs(path: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Give the names of inputs, and their dimensions as the file has them, as far as it is read.

    Of a broken file there may be fewer: whoever reads the model says what is wrong with it.
    """
    scan = _Scan()
    try:
        with open_regular(path) as file:
            while chunk := file.read(_CHUNK):
                scan.parser.Parse(chunk)
                yield from scan.found
                scan.found.clear()
    except (expat.ExpatError, OSError, LookupError, ValueError, _Refused):
        # LookupError and ValueError: an encoding that is not known, or not kept to.
        yield from scan.found


class _Refused(Exception):
    """Ends a scan."""


class _Scan:
    """Looks for parameters in an IR's XML."""

    def __init__(self) -> None:
        self.found: list[tuple[str, tuple[str, ...]]] = []
        self._name: str | None = None
        """Of the parameter that is being read."""
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.StartDoctypeDeclHandler = self._refuse  # the reader will say why

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "layer":
            is_input = attributes.get("type") == "Parameter"
            self._name = attributes.get("name", "") if is_input else None
        elif tag == "data" and self._name is not None:
            dims = attributes.get("shape", "").split(",")
            self.found.append((self._name, tuple(dim.strip() for dim in dims)))
            self._name = None

    def _refuse(self, *_: object) -> None:
        raise _Refused
