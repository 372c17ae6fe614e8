"""Values of constants: views of files, small values, or one value per repetition of a block."""

from __future__ import annotations

import base64
from dataclasses import dataclass

import numpy as np
from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from compiler_layer.elements import NUMPY
from compiler_layer.files import FileView

_LISTED_ELEMENTS = 16
"""Maximum length of inline values that are printed as numbers."""


@dataclass(frozen=True, slots=True)
class Inline:
    """Row-major values of an element type, in numpy's representation."""

    element: str
    data: bytes


@irdl_attr_definition
class FileAttr(Data[FileView]):
    """``#ov.file<"model.safetensors", offset, size, f16>``."""

    name = "ov.file"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> FileView:
        """Parse the parameters."""
        with parser.in_angle_brackets():
            path = parser.parse_str_literal()
            parser.parse_punctuation(",")
            offset = parser.parse_integer()
            parser.parse_punctuation(",")
            size = parser.parse_integer()
            parser.parse_punctuation(",")
            return FileView(path, offset, size, parse_element(parser))

    def print_parameter(self, printer: Printer) -> None:
        """Print the parameters."""
        view = self.data
        printer.print_string(f'<"{view.path}", {view.offset}, {view.size}, {view.element}>')


@irdl_attr_definition
class InlineAttr(Data[Inline]):
    """``#ov.inline<i64 [0, 8, -1, 32]>``: a value in the IR itself; base64 for a long one."""

    name = "ov.inline"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Inline:
        """Parse the parameters."""
        with parser.in_angle_brackets():
            element = parse_element(parser)
            text = parser.parse_optional_str_literal()
            if text is not None:
                return Inline(element, base64.b64decode(text))
            values = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, lambda: parser.parse_number(allow_boolean=True)
            )
            return Inline(element, np.array(values, NUMPY[element]).tobytes())

    def print_parameter(self, printer: Printer) -> None:
        """Print the parameters."""
        element, data = self.data.element, self.data.data
        values = np.frombuffer(data, NUMPY[element])
        if len(values) <= _LISTED_ELEMENTS and np.isfinite(values).all():
            text = "[" + ", ".join(map(_number, values)) + "]"
        else:
            text = f'"{base64.b64encode(data).decode()}"'
        printer.print_string(f"<{element} {text}>")


@dataclass(frozen=True, slots=True)
class Repeated:
    """Values of a constant of a repeated block, one for each repetition.

    ``own`` is the repetition that the constant itself belongs to.
    """

    own: int
    values: tuple[FileView | Inline, ...]


@irdl_attr_definition
class RepeatedAttr(Data[Repeated]):
    """``#ov.repeated<0 of [#ov.file<…>, #ov.file<…>]>``: a weight for each repetition of a block.

    Passes must not read the values: a conclusion from them would hold for one repetition only.
    """

    name = "ov.repeated"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Repeated:
        """Parse the parameters."""
        with parser.in_angle_brackets():
            own = parser.parse_integer()
            parser.parse_keyword("of")
            values = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, parser.parse_attribute
            )
            plain = [each.data for each in values if isinstance(each, FileAttr | InlineAttr)]
            if len(plain) != len(values) or not 0 <= own < len(plain):
                parser.raise_error("expected values, and the index of the constant's own value")
            return Repeated(own, tuple(plain))

    def print_parameter(self, printer: Printer) -> None:
        """Print the parameters."""
        printer.print_string(f"<{self.data.own} of [")
        for number, value in enumerate(self.data.values):
            printer.print_string(", " if number else "")
            printer.print_attribute(attribute_of(value))
        printer.print_string("]>")


ValueAttr = FileAttr | InlineAttr | RepeatedAttr


def attribute_of(value: FileView | Inline) -> FileAttr | InlineAttr:
    """Return the attribute that holds a value."""
    return FileAttr(value) if isinstance(value, FileView) else InlineAttr(value)


def parse_element(parser: AttrParser) -> str:
    """Parse the name of an element type."""
    element = parser.parse_identifier()
    if element not in NUMPY:
        parser.raise_error(f"unknown element type {element}")
    return element


def _number(value: np.generic) -> str:
    if isinstance(value, np.bool_):
        return str(bool(value)).lower()
    # The IR's grammar requires a point in every float: 1e-06 is written 1.0e-06.
    text = str(value)
    return text if "." in text else text.replace("e", ".0e")
