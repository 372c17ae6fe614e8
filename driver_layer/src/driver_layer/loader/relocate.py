"""Relocations: a table with the formula of each type, and the loop that applies them.

With S the symbol's address, A the addend, Z the symbol's size and D the word, each recipe returns
the new D. Words are computed as u64, which wraps, and truncated to the type's width.

Source: docs/reference/elf.md#relocations, there checked against the public loader on 1088 cases.
Types 25 to 28, which rewrite a DMA descriptor, are in ``loader.strides``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driver_layer.abi.elf import RELA, Relocation
from driver_layer.abi.layout import RecordArray
from driver_layer.errors import RelocError
from driver_layer.npu.memory import Bytes

Words = npt.NDArray[np.uint64]
Recipe = Callable[[Words, Words, Words, Words], Words]
"""Function that computes new words from D, S, A and Z."""

_LOW_21 = np.uint64(0x1FFFFF)
_TILES = np.uint64(0x07E00000)
_NOT_TILES = ~_TILES
_BITS_40 = np.uint64((1 << 40) - 1)
_MULTICAST_BITS = np.uint64(0x00C00000)
_ONE = np.uint64(1)

_MULTICAST = np.zeros(16, np.uint64)
"""Nibbles by the two tile bits of an address: the base's tile, then the offsets of the others."""
_MULTICAST[[4, 8, 12]] = (0x0012, 0x0211, 0x3210)


def _shift_left(value: Words | np.uint64, by: int) -> Words:
    return np.asarray(value << np.uint64(by))


def _shift_right(value: Words, by: int) -> Words:
    return value >> np.uint64(by)


def _replace(d: Words, value: Words, bits: int, at: int = 0) -> Words:
    """Replace ``bits`` bits of D from bit ``at`` on by the low bits of a value."""
    mask = np.uint64((1 << bits) - 1)
    return (d & ~_shift_left(mask, at)) | _shift_left(value & mask, at)


def _nibbles(address: Words) -> Words:
    return _MULTICAST[_shift_right(address & _MULTICAST_BITS, 20).astype(np.intp)]


def _base(address: Words) -> Words:
    first = _nibbles(address) & np.uint64(0xF)
    return (address & ~_MULTICAST_BITS) | _shift_left(first, 20)


def _offset(address: Words, index: Words) -> Words:
    """Return the offset of further tile number ``index`` of a multicast, in units of 16 bytes."""
    if np.any(index > np.uint64(2)):
        raise ValueError(f"multicast index {int(index.max())} is not below 3")
    nibble = (_nibbles(address) >> ((index + _ONE) * np.uint64(4))) & np.uint64(0xF)
    return nibble * np.uint64((2 << 20) >> 4)


def _custom(d: Words, s: Words, a: Words, _z: Words) -> Words:
    value = _shift_right((s + a) & _LOW_21, 5)
    cleared = d & ~np.uint64(0xFFFE4000)
    return cleared | _shift_left(value & ~_ONE, 16) | _shift_left(value & _ONE, 14)


def _disp28(d: Words, s: Words, a: Words, _z: Words) -> Words:
    return (d & np.uint64(0xF)) | _shift_left(_offset(s + a, _shift_right(d, 4)), 4)


def _disp4(d: Words, s: Words, a: Words, _z: Words) -> Words:
    set_ = (_offset(s + a, d & np.uint64(0xF)) != 0).astype(np.uint64)
    return _replace(d, set_, 4)


def _high_27(d: Words, s: Words, a: Words, _z: Words) -> Words:
    address = (s + a) & ~np.uint64(0xE00000) & np.uint64(0x7FFFFFFF)
    return d | _shift_left(_shift_right(address, 4), 37)


_R = Relocation
RECIPES: dict[Relocation, tuple[int, Recipe]] = {
    # type: width of the word in bytes, and formula of the new word
    _R.R_VPU_64: (8, lambda d, s, a, z: s + a),
    _R.R_VPU_64_OR: (8, lambda d, s, a, z: d | (s + a)),
    _R.R_VPU_DISP40_RTM: (
        8,
        lambda d, s, a, z: d | ((s + a * ((d & _BITS_40) & (z - _ONE))) & _BITS_40),
    ),
    _R.R_VPU_64_LSHIFT: (8, lambda d, s, a, z: d << s),
    _R.R_VPU_32: (4, lambda d, s, a, z: s + a),
    _R.R_VPU_32_RTM: (4, lambda d, s, a, z: s + a * (d & (z - _ONE))),
    _R.R_VPU_32_SUM: (4, lambda d, s, a, z: d + s + a),
    _R.R_VPU_32_MULTICAST_BASE: (4, lambda d, s, a, z: _base(s + a)),
    _R.R_VPU_32_MULTICAST_BASE_SUB: (4, lambda d, s, a, z: _base(s + a) - d),
    _R.R_VPU_DISP28_MULTICAST_OFFSET: (4, _disp28),
    _R.R_VPU_DISP4_MULTICAST_OFFSET_CMP: (4, _disp4),
    _R.R_VPU_LO_21: (4, lambda d, s, a, z: _replace(d, s + a, 21)),
    _R.R_VPU_LO_21_SUM: (4, lambda d, s, a, z: d + ((s + a) & _LOW_21)),
    _R.R_VPU_LO_21_MULTICAST_BASE: (4, lambda d, s, a, z: _base((s + a) & _LOW_21)),
    _R.R_VPU_16_LSB_21_RSHIFT_5: (
        4,
        lambda d, s, a, z: _replace(d, _shift_right((s + a) & _LOW_21, 5), 16),
    ),
    _R.R_VPU_LO_21_RSHIFT_4: (
        4,
        lambda d, s, a, z: _replace(d, _shift_right((s + a) & _LOW_21, 4), 21),
    ),
    _R.R_VPU_CMX_LOCAL_RSHIFT_5: (4, lambda d, s, a, z: _shift_right((s + a) & _NOT_TILES, 5)),
    _R.R_VPU_32_BIT_OR_B21_B26_UNSET: (4, lambda d, s, a, z: d | ((s + a) & _NOT_TILES)),
    _R.R_VPU_64_BIT_OR_B21_B26_UNSET: (
        8,
        lambda d, s, a, z: d | ((s + a) & np.uint64(0xF81FFFFF)),
    ),
    _R.R_VPU_16_LSB_21_RSHIFT_5_LSHIFT_16: (
        4,
        lambda d, s, a, z: _replace(d, _shift_right((s + a) & _LOW_21, 5), 16, at=16),
    ),
    _R.R_VPU_16_LSB_21_RSHIFT_5_LSHIFT_CUSTOM: (4, _custom),
    _R.R_VPU_32_BIT_OR_B21_B26_UNSET_HIGH_16: (
        2,
        lambda d, s, a, z: d | (_shift_right((s + a) & _NOT_TILES, 16) & np.uint64(0xFFFF)),
    ),
    _R.R_VPU_32_BIT_OR_B21_B26_UNSET_LOW_16: (2, lambda d, s, a, z: d | ((s + a) & _NOT_TILES)),
    _R.R_VPU_HIGH_27_BIT_OR: (8, _high_27),
    _R.R_VPU_32_OR_LO_19_LSB_21_RSHIFT_2: (
        4,
        lambda d, s, a, z: _replace(d, _shift_right((s + a) & _LOW_21, 2), 19),
    ),
    _R.R_VPU_16_SUM: (2, lambda d, s, a, z: d + s + a),
    _R.R_VPU_64_MULT: (8, lambda d, s, a, z: d * s),
    _R.R_VPU_64_MULT_SUB: (8, lambda d, s, a, z: d * (a - s)),
}
"""The supported relocations."""

_WIDTHS = {int(kind): width for kind, (width, _) in RECIPES.items()}
_WIDTH_OF: npt.NDArray[np.int64] = np.zeros(max(_WIDTHS) + 1, np.int64)
_WIDTH_OF[list(_WIDTHS)] = list(_WIDTHS.values())
_OF_DESCRIPTORS = frozenset(int(kind) for kind in Relocation) - _WIDTHS.keys()


@dataclass(frozen=True, slots=True)
class RelocationTable:
    """The relocations of one section; construction checks types and offsets.

    Attributes:
        name: the relocation section's name, for errors.
        entries: RELA records.
        target_size: bytes of the patched section.
    """

    name: str
    entries: RecordArray
    target_size: int

    def __post_init__(self) -> None:
        types, offsets = self.types, self.entries["r_offset"]
        for kind in _different(types):
            if kind not in _WIDTHS:
                at = int(np.argmax(types == kind)) * RELA.itemsize
                if kind in _OF_DESCRIPTORS:
                    message = f"type {Relocation(kind).name} needs a table of DMA symbols"
                    raise RelocError(message, self.name, at)
                raise RelocError(f"unknown type {kind}", self.name, at)
        widths = _WIDTH_OF[types].astype(np.uint64)
        limit = np.uint64(self.target_size)
        bad = (offsets > limit) | (widths > limit - np.minimum(offsets, limit))
        if bad.any():
            index = int(bad.argmax())
            raise RelocError(
                f"offset {int(offsets[index]):#x} is outside the target's {self.target_size} bytes",
                self.name,
                index * RELA.itemsize,
            )

    @property
    def types(self) -> npt.NDArray[np.uint64]:
        """Type of each entry."""
        return self.entries["r_info"] & np.uint64(0xFFFFFFFF)

    @property
    def cells(self) -> npt.NDArray[np.int64]:
        """Offset of every patched byte; repeated where relocations overlap."""
        offsets = self.entries["r_offset"].astype(np.int64)
        spread = offsets[:, None] + np.arange(8)
        return spread[np.arange(8) < _WIDTH_OF[self.types][:, None]]

    @property
    def symbols(self) -> npt.NDArray[np.intp]:
        """Symbol index of each entry."""
        return (self.entries["r_info"] >> np.uint64(32)).astype(np.intp)


def apply(table: RelocationTable, data: Bytes, addresses: Words, sizes: Words) -> None:
    """Patch a section.

    Args:
        table: the relocations.
        data: the section's bytes.
        addresses: address S of each symbol, by index.
        sizes: size Z of each symbol, by index.

    Raises:
        RelocError: a multicast index is out of range.
    """
    types = table.types
    offsets = table.entries["r_offset"].astype(np.int64)
    s, z = addresses[table.symbols], sizes[table.symbols]
    a = table.entries["r_addend"].astype(np.uint64)
    for part in _independent(types, offsets):
        width, recipe = RECIPES[Relocation(int(types[part[0]]))]
        cells = offsets[part, None] + np.arange(width)
        words = data[cells].view(f"<u{width}")[:, 0].astype(np.uint64)
        try:
            patched = recipe(words, s[part], a[part], z[part]).astype(f"<u{width}")
        except ValueError as error:
            raise RelocError(str(error), table.name, int(part[0]) * RELA.itemsize) from None
        data[cells] = patched.view(np.uint8).reshape(-1, width)


def _independent(
    types: npt.NDArray[np.uint64], offsets: npt.NDArray[np.int64]
) -> list[npt.NDArray[np.intp]]:
    """Split entries into groups of one type, each of which may be patched in one step, in order.

    If entries overlap, the order of the table matters, and each entry is a group.
    """
    order = np.argsort(offsets, kind="stable")
    if (np.diff(offsets[order]) >= _WIDTH_OF[types][order][:-1]).all():
        return [np.flatnonzero(types == kind) for kind in _different(types)]
    return [np.array([index]) for index in range(len(types))]


def _different(types: npt.NDArray[np.uint64]) -> list[int]:
    """Return the distinct types, ascending; they are small unless the blob is malformed."""
    if not len(types) or int(types.max()) >= len(_WIDTH_OF):
        return np.unique(types).tolist()
    return np.flatnonzero(np.bincount(types.astype(np.intp))).tolist()
