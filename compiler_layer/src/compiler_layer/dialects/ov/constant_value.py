"""What constants hold: views of files, small values, or those of each repetition of a block."""

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
"""Inline values up to this many are printed as numbers."""


@dataclass(frozen=True, slots=True)
class Inline:
    """Row-major values of an element type, as numpy holds it."""

    element: str
    data: bytes


@irdl_attr_definition
class FileAttr(Data[FileView]):
    """``#ov.file<"model.safetensors", offset, size, f16>``."""

    name = "ov.file"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> FileView:
        """Read the parameters."""
        with parser.in_angle_brackets():
            path = parser.parse_str_literal()
            parser.parse_punctuation(",")
            offset = parser.parse_integer()
            parser.parse_punctuation(",")
            size = parser.parse_integer()
            parser.parse_punctuation(",")
            return FileView(path, offset, size, parse_element(parser))

    def print_parameter(self, printer: Printer) -> None:
        """Write the parameters."""
        view = self.data
        printer.print_string(f'<"{view.path}", {view.offset}, {view.size}, {view.element}>')


@irdl_attr_definition
class InlineAttr(Data[Inline]):
    """``#ov.inline<i64 [0, 8, -1, 32]>``: a value in the IR itself; base64 where it is long."""

    name = "ov.inline"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Inline:
        """Read the parameters."""
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
        """Write the parameters."""
        element, data = self.data.element, self.data.data
        values = np.frombuffer(data, NUMPY[element])
        if len(values) <= _LISTED_ELEMENTS and np.isfinite(values).all():
            text = "[" + ", ".join(map(_number, values)) + "]"
        else:
            text = f'"{base64.b64encode(data).decode()}"'
        printer.print_string(f"<{element} {text}>")


@dataclass(frozen=True, slots=True)
class Repeated:
    """What a constant of a repeated block holds in each of the block's repetitions.

    ``own`` is the repetition that the constant itself belongs to.
    """

    own: int
    values: tuple[FileView | Inline, ...]


@irdl_attr_definition
class RepeatedAttr(Data[Repeated]):
    """``#ov.repeated<0 of [#ov.file<…>, #ov.file<…>]>``: a weight of each repetition of a block.

    Passes must not look at the values, as what they find would hold for one repetition alone.
    """

    name = "ov.repeated"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Repeated:
        """Read the parameters."""
        with parser.in_angle_brackets():
            own = parser.parse_integer()
            parser.parse_keyword("of")
            values = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, parser.parse_attribute
            )
            plain = [each.data for each in values if isinstance(each, FileAttr | InlineAttr)]
            if len(plain) != len(values) or not 0 <= own < len(plain):
                parser.raise_error("expected values, and which of them it is")
            return Repeated(own, tuple(plain))

    def print_parameter(self, printer: Printer) -> None:
        """Write the parameters."""
        printer.print_string(f"<{self.data.own} of [")
        for number, value in enumerate(self.data.values):
            printer.print_string(", " if number else "")
            printer.print_attribute(attribute_of(value))
        printer.print_string("]>")


ValueAttr = FileAttr | InlineAttr | RepeatedAttr


def attribute_of(value: FileView | Inline) -> FileAttr | InlineAttr:
    """The attribute that holds a value."""
    return FileAttr(value) if isinstance(value, FileView) else InlineAttr(value)


def parse_element(parser: AttrParser) -> str:
    """Read the name of an element type."""
    element = parser.parse_identifier()
    if element not in NUMPY:
        parser.raise_error(f"unknown element type {element}")
    return element


def _number(value: np.generic) -> str:
    if isinstance(value, np.bool_):
        return str(bool(value)).lower()
    # The IR's grammar wants a point in every float: 1e-06 is written 1.0e-06.
    text = str(value)
    return text if "." in text else text.replace("e", ".0e")
