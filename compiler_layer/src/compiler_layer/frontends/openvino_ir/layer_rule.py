"""Rule of a layer type: its inputs and attributes, and the parsing of attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute

from compiler_layer.dialects.ov.op import bool_attr, float_attr, int_attr, ints_attr

Property = Callable[[str], Attribute]
"""Parser of an attribute's text."""


def flag(text: str) -> Attribute:
    """Parse a boolean; any other text is false, as in OpenVINO."""
    return bool_attr(text in ("true", "1"))


def integer(text: str) -> Attribute:
    """Parse an i64.

    Raises:
        ValueError: the text is not an i64.
    """
    return int_attr(_int64(text))


def integers(text: str) -> Attribute:
    """Parse i64 values separated by commas; errors as in ``integer``."""
    return ints_attr([_int64(part) for part in text.split(",") if part.strip()])


def _int64(text: str) -> int:
    value = int(text)
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"an integer of {value.bit_length()} bits is not an i64")
    return value


def number(text: str) -> Attribute:
    """Parse an f64.

    Raises:
        ValueError: the text is not a number.
    """
    return float_attr(float(text))


class OneOf:
    """Parser of a word from a fixed set; case and spaces are ignored.

    Args:
        allowed: the words in the op's spelling.
    """

    def __init__(self, *allowed: str) -> None:
        self.words = allowed
        self._spelled = {_spelled(word): word for word in allowed}

    def __contains__(self, text: str) -> bool:
        return _spelled(text) in self._spelled

    def __call__(self, text: str) -> Attribute:
        """Return the word as a property."""
        return StringAttr(self._spelled[_spelled(text)])


def _spelled(word: str) -> str:
    return word.lower().replace(" ", "")


@dataclass(frozen=True, slots=True)
class LayerRule:
    """Rule for the conversion of a layer to an op."""

    opsets: frozenset[str]
    properties: Mapping[str, tuple[Property, str | None]] = field(
        default_factory=dict[str, tuple[Property, str | None]]
    )
    """Parser and default of each attribute; None if the attribute is required."""
    constants: tuple[int, ...] = ()
    """Inputs whose values determine the rank of the result."""
    variadic: tuple[int, int] = (0, 1)
    """Minimum and maximum number of the op's last operand, if that is optional or variadic."""


def rule(
    opsets: str, constants: tuple[int, ...] = (), **properties: tuple[Property, str | None]
) -> LayerRule:
    """Create the rule of a layer; parameters as in ``LayerRule``.

    Args:
        opsets: the numbers of the opsets.
        constants: the inputs that must be constants.
        properties: parsers and defaults by attribute.
    """
    numbered = frozenset(f"opset{number}" for number in opsets.split())
    return LayerRule(numbered, properties, constants)
