"""What each weight becomes when a model is quantised.

Source: what optimum-intel's exporter writes: ``--weight-format int8`` is 8 bits per channel,
``int4`` 4 bits per group, and 8 bits per channel for embeddings and the head.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.errors import CompilerUsageError
from compiler_layer.quantize.linear import BITS
from compiler_layer.quantize.weights import Weight

_BITS_OF_FORMAT = {"int8": 8, "int4": 4}


@dataclass(frozen=True, slots=True)
class Format:
    """What a user asks for.

    Args:
        name: int8 or int4.
        group_size: weights that have a scale in common, of int4; -1: all of a channel.
        symmetric: signed numbers without a zero point.

    Raises:
        CompilerUsageError: there is no such format or group.
    """

    name: str
    group_size: int = 128
    symmetric: bool = False

    def __post_init__(self) -> None:
        if self.name not in _BITS_OF_FORMAT:
            known = ", ".join(_BITS_OF_FORMAT)
            raise CompilerUsageError(f"no format {self.name!r} to quantise to; there are {known}")
        if self.group_size != -1 and self.group_size < 1:
            raise CompilerUsageError(
                f"a group size of {self.group_size}; it is a number of weights, "
                "or -1 for all of a channel"
            )


@dataclass(frozen=True, slots=True)
class Scheme:
    """How one weight is stored."""

    element: str
    """i8, u8, i4 or u4."""
    group_size: int | None = None
    """Weights that have a scale in common; None: all of a channel."""
    note: str = ""
    """Why it is not what was asked for."""
    per_tensor: bool = False
    """All of a tensor has one scale."""

    def __str__(self) -> str:
        """The scheme as tables show it: ``i4 g128``."""
        groups = "channel" if self.group_size is None else f"g{self.group_size}"
        groups = "tensor" if self.per_tensor else groups
        return f"{self.element} {groups}"

    @property
    def bits(self) -> int:
        """Bits of one number."""
        return BITS[self.element]


ACTIVATIONS = Scheme("u8", per_tensor=True)
"""How activations are rounded by a static range."""

_EIGHT_BITS = "u8"
"""What the exporter falls back to, whatever was asked for."""


def scheme_of(weight: Weight, wanted: Format) -> Scheme:
    """Decide how a weight is stored."""
    if _BITS_OF_FORMAT[wanted.name] == 8:
        return Scheme("i8" if wanted.symmetric else "u8")
    if weight.role != "linear":
        return Scheme(_EIGHT_BITS, note=f"the {weight.role} keeps 8 bits")
    element = "i4" if wanted.symmetric else "u4"
    width = shape_of(weight.constant.output)[weight.summed]
    if wanted.group_size == -1:
        return Scheme(element)
    if width % wanted.group_size:
        note = f"8 bits: {width} is no multiple of {wanted.group_size}"
        return Scheme(_EIGHT_BITS, note=note)
    return Scheme(element, wanted.group_size)
