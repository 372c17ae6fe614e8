"""Weights side by side, each once, in the form that programs read: in a blob, or in an arena.

Their locations follow from the programs' inputs alone, so a file needs no table of them.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from compiler_layer.elements import stored_bytes
from compiler_layer.errors import CompilerError
from compiler_layer.weights import WEIGHT_PREFIX, WeightRef
from npuw_layer.backends.protocols import Array, TensorInfo
from npuw_layer.errors import BlobError

ALIGNMENT = 64
"""Alignment of weights, bytes: a cache line, and the unit of vector loads."""

_FORMAT = 1
"""Version of the layout; changes whenever the same weights may be stored as other bytes."""


@dataclass(frozen=True, slots=True)
class WeightSlot:
    """Location of a weight, bytes."""

    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class ArenaLayout:
    """All weights of an arena, by name, and its size in bytes."""

    slots: Mapping[str, WeightSlot]
    nbytes: int


def plan_layout(sizes: Mapping[str, int]) -> ArenaLayout:
    """Place weights one after the other, in their order.

    Args:
        sizes: bytes of each weight; empty if all weights are used in their files.
    """
    slots: dict[str, WeightSlot] = {}
    end = 0
    for name, nbytes in sizes.items():
        slots[name] = WeightSlot(end, nbytes)
        end += -(-nbytes // ALIGNMENT) * ALIGNMENT
    return ArenaLayout(slots, max(end, ALIGNMENT))


def identify(bank: str, model: str, layout: ArenaLayout) -> str:
    """Name an arena, so that arenas of equal names hold equal bytes at equal offsets.

    Args:
        bank: NPUW_WEIGHTS_BANK; processes share only with others of the same bank.
        model: the digest of the model's files.
        layout: locations of its weights.

    Returns:
        32 hexadecimal digits.
    """
    slots = [[name, slot.offset, slot.nbytes] for name, slot in layout.slots.items()]
    whole = json.dumps([_FORMAT, bank, model, layout.nbytes, slots])
    return hashlib.sha256(whole.encode()).hexdigest()[:32]


PART = "weights"
"""Name of the weights among the parts of a file; no program has this name."""


@dataclass(frozen=True, slots=True)
class WantedWeights:
    """Weights to store in a file.

    Attributes:
        infos: inputs of programs, by name, in the order of the model's files.
        layout: locations in the file's part.
    """

    infos: Mapping[str, TensorInfo]
    layout: ArenaLayout

    @staticmethod
    def of(inputs: Iterable[TensorInfo]) -> WantedWeights | None:
        """Collect the weights among programs' inputs; None without any.

        Raises:
            BlobError: a weight does not match its name, or two of one name differ.
        """
        found: dict[str, tuple[WeightRef, TensorInfo]] = {}
        for info in inputs:
            if info.name.startswith(WEIGHT_PREFIX):
                known = found.setdefault(info.name, (_checked(info), info))
                if known[1] != info:
                    raise BlobError(f"two programs read {info.name!r} as different tensors")
        if not found:
            return None
        order = sorted(found, key=lambda name: (found[name][0].file, found[name][0].offset, name))
        infos = {name: found[name][1] for name in order}
        return WantedWeights(infos, plan_layout({name: _size(infos[name]) for name in order}))

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Offset and size of each weight, ascending."""
        slots = self.layout.slots.values()
        return [(slot.offset, slot.nbytes) for slot in slots if slot.nbytes]

    @property
    def digest(self) -> str:
        """Digest that distinguishes these weights from others of the same model."""
        return hashlib.sha256("\0".join(map(repr, self.infos.values())).encode()).hexdigest()

    def gather(self, read: Callable[[TensorInfo], Array]) -> memoryview:
        """Read all weights into page-aligned memory.

        Args:
            read: returns the bytes of one weight, u8.
        """
        content = memoryview(mmap.mmap(-1, self.layout.nbytes))
        values = np.frombuffer(content, np.uint8)
        for name, info in self.infos.items():
            slot = self.layout.slots[name]
            values[slot.offset : slot.offset + slot.nbytes] = read(info)
        return content.toreadonly()


@dataclass(frozen=True, slots=True)
class StoredWeights:
    """Weights stored in a file.

    Attributes:
        content: the file's part.
        layout: locations in the part.
        digest: digest of the content; empty if the model's files already identify it.

    Raises:
        BlobError: the part is too long or too short.
    """

    content: memoryview
    layout: ArenaLayout
    digest: str = ""

    def __post_init__(self) -> None:
        if len(self.content) != self.layout.nbytes:
            found, expected = len(self.content), self.layout.nbytes
            raise BlobError(f"the weights have {found} bytes, the programs read {expected}")

    def __contains__(self, name: object) -> bool:
        return name in self.layout.slots

    @property
    def data(self) -> Array:
        """Bytes of all weights, u8."""
        return np.frombuffer(self.content, np.uint8)

    def read(self, name: str) -> Array:
        """Return a weight's bytes, u8, in place."""
        slot = self.layout.slots[name]
        return self.data[slot.offset : slot.offset + slot.nbytes]


def _checked(info: TensorInfo) -> WeightRef:
    """Check that an input is the weight that its name states, and return its reference.

    Raises:
        BlobError: it is another weight.
    """
    try:
        ref = WeightRef.parse(info.name)
    except CompilerError as error:
        raise BlobError(str(error)) from None
    if ref.element != info.element or ref.size != stored_bytes(ref.stored, math.prod(info.shape)):
        raise BlobError(f"{info.name!r} does not fit {info.element} {list(info.shape)}")
    return ref


def _size(info: TensorInfo) -> int:
    return stored_bytes(info.element, math.prod(info.shape))
