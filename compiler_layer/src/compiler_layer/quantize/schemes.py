"""Schemes: the storage of each weight of a quantized model.

Source: the output of optimum-intel's exporter: ``--weight-format int8`` is 8 bits per channel,
``int4`` 4 bits per group, and 8 bits per channel for embeddings and the LM head. The default group
size is NNCF's with GroupSizeFallbackMode.ADJUST; its ERROR, the exporter's default, rejects models
such as SmolLM2, of which 128 does not divide all widths.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.errors import CompilerUsageError
from compiler_layer.quantize.linear import BITS
from compiler_layer.quantize.weights import Weight

_BITS_OF_FORMAT = {"int8": 8, "int4": 4}

GROUP_SIZES = (128, 64, 32)
"""Default sizes of an int4 quantization group; the first that divides a weight's width is used."""


@dataclass(frozen=True, slots=True)
class Format:
    """Format that a user requests.

    Args:
        name: int8 or int4.
        group_size: the size of an int4 quantization group; -1: one group per channel; None: for
            each weight, the first of ``GROUP_SIZES`` that divides its width.
        symmetric: True for signed numbers without a zero point.

    Raises:
        CompilerUsageError: the format or the group size does not exist.
    """

    name: str
    group_size: int | None = None
    symmetric: bool = False

    def __post_init__(self) -> None:
        if self.name not in _BITS_OF_FORMAT:
            known = ", ".join(_BITS_OF_FORMAT)
            raise CompilerUsageError(f"no weight format {self.name!r}; choose one of {known}")
        if self.group_size is not None and self.group_size != -1 and self.group_size < 1:
            raise CompilerUsageError(
                f"a group size of {self.group_size} is not possible; set a number of weights, "
                "or -1 for one group per channel"
            )


@dataclass(frozen=True, slots=True)
class Scheme:
    """Storage of one weight."""

    element: str
    """i8, u8, i4 or u4."""
    group_size: int | None = None
    """Size of a quantization group; None: one group per channel."""
    note: str = ""
    """Reason for a scheme other than the requested one."""
    per_tensor: bool = False
    """True if a tensor has one scale."""

    def __str__(self) -> str:
        """Return the scheme in the form of tables: ``i4 g128``."""
        groups = "channel" if self.group_size is None else f"g{self.group_size}"
        groups = "tensor" if self.per_tensor else groups
        return f"{self.element} {groups}"

    @property
    def bits(self) -> int:
        """Number of bits of one value."""
        return BITS[self.element]


ACTIVATIONS = Scheme("u8", per_tensor=True)
"""Scheme of activations with a static range."""

_EIGHT_BITS = "u8"
"""Fallback of the exporter, for any requested format."""


def scheme_of(weight: Weight, wanted: Format) -> Scheme:
    """Return the scheme of a weight for a requested format."""
    if _BITS_OF_FORMAT[wanted.name] == 8:
        return Scheme("i8" if wanted.symmetric else "u8")
    if weight.role != "linear":
        return Scheme(_EIGHT_BITS, note=f"the {weight.role} keeps 8 bits")
    element = "i4" if wanted.symmetric else "u4"
    width = shape_of(weight.constant.output)[weight.summed]
    if wanted.group_size == -1:
        return Scheme(element)
    sizes = GROUP_SIZES if wanted.group_size is None else (wanted.group_size,)
    for size in sizes:
        if width % size == 0:
            return Scheme(element, size)
    return Scheme(_EIGHT_BITS, note=f"8 bits: {width} is not a multiple of {sizes[-1]}")
