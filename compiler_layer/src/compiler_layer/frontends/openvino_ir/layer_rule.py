"""What is said of a kind of layer, and how its attributes are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute

from compiler_layer.dialects.ov.op import bool_attr, float_attr, int_attr, ints_attr

Property = Callable[[str], Attribute]
"""Reads an attribute's text."""


def flag(text: str) -> Attribute:
    """Read a boolean; what is neither word is false, as in OpenVINO."""
    return bool_attr(text in ("true", "1"))


def integer(text: str) -> Attribute:
    """Read an i64.

    Raises:
        ValueError: it is none.
    """
    return int_attr(_int64(text))


def integers(text: str) -> Attribute:
    """Read several, between commas; errors as ``integer``."""
    return ints_attr([_int64(part) for part in text.split(",") if part.strip()])


def _int64(text: str) -> int:
    value = int(text)
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"an integer of {value.bit_length()} bits")
    return value


def number(text: str) -> Attribute:
    """Read an f64.

    Raises:
        ValueError: it is none.
    """
    return float_attr(float(text))


class Words:
    """Reads one of some words, however it is capitalised and spaced.

    Args:
        allowed: as the op wants them.
    """

    def __init__(self, *allowed: str) -> None:
        self.words = allowed
        self._spelled = {_spelled(word): word for word in allowed}

    def __contains__(self, text: str) -> bool:
        return _spelled(text) in self._spelled

    def __call__(self, text: str) -> Attribute:
        """Give the word as a property."""
        return StringAttr(self._spelled[_spelled(text)])


def _spelled(word: str) -> str:
    return word.lower().replace(" ", "")


@dataclass(frozen=True, slots=True)
class LayerRule:
    """How a layer becomes an op."""

    opsets: frozenset[str]
    inputs: tuple[int, int]
    """The least and the most inputs it has."""
    fixed: int | None = None
    """How many of them are operands of their own; None if all are."""
    properties: Mapping[str, tuple[Property, str | None]] = field(
        default_factory=dict[str, tuple[Property, str | None]]
    )
    """For each attribute, how to read it, and its default; None where it must be there."""
    constants: tuple[int, ...] = ()
    """Inputs without whose values not even the rank of the result is known."""


def rule(
    opsets: str,
    least: int,
    most: int | None = None,
    fixed: int | None = None,
    constants: tuple[int, ...] = (),
    **properties: tuple[Property, str | None],
) -> LayerRule:
    """Make the rule of a layer; parameters as of ``LayerRule``.

    Args:
        opsets: their numbers.
        least: inputs.
        most: inputs; as many as ``least`` if not given.
        fixed: inputs that are operands of their own.
        constants: inputs that must be known.
        properties: by attribute.
    """
    numbered = frozenset(f"opset{number}" for number in opsets.split())
    inputs = (least, least if most is None else most)
    return LayerRule(numbered, inputs, fixed, properties, constants)
