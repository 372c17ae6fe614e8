"""A mixture in parts as one piece of bytes, as a blob cache keeps it.

    magic        8 bytes
    length       u64, of the header
    header       JSON: the ports, which program an expert has, and with which weights
    programs     each at a multiple of a page
    literals     weights that are in no file, one after the other

It is read as what may be damaged: whatever does not fit is an error.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from npuw_layer.errors import DeviceError
from npuw_layer.llm.arena import ELEMENT_TYPES
from npuw_layer.ports import TensorInfo

MAGIC = b"NPUWMOE1"
_HEAD = struct.Struct("<8sQ")
_PAGE = 4096
_Size = Annotated[int, Field(ge=0, le=1 << 40)]
_Dim = Annotated[int, Field(ge=0, le=1 << 32)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PortEntry(_Strict):
    """An input or output."""

    name: str
    element: str
    shape: tuple[_Dim, ...]

    @property
    def info(self) -> TensorInfo:
        """The port."""
        return TensorInfo(self.name, self.element, self.shape)

    @staticmethod
    def of(info: TensorInfo) -> PortEntry:
        """Take down a port."""
        return PortEntry(name=info.name, element=info.element, shape=info.shape)


class ExpertEntry(_Strict):
    """One expert."""

    number: int = Field(ge=0)
    program: int = Field(ge=0)
    names: dict[str, str]
    """For the program's inputs that are weights of this expert what they are in the mixture; those
    that are called the same are left out."""


class Routed(_Strict):
    """What a mixture has, and which of its experts are run how.

    Attributes:
        rows: T rows of C channels, as [..., C].
        ids: the experts chosen, [T, K].
        weights: with what they count, T x K.
        output: the sum, T rows of H channels, as [..., H].
        count: rows that an expert's program takes.
        experts: in the order of the sum.
    """

    rows: PortEntry
    ids: PortEntry
    weights: PortEntry
    output: PortEntry
    count: int = Field(ge=1)
    experts: tuple[ExpertEntry, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if len(self.ids.shape) != 2 or min(self.ids.shape) < 1:
            raise ValueError("ids are not [tokens, slots]")
        tokens, slots = self.ids.shape
        rows = (math.prod(port.shape[:-1]) for port in (self.rows, self.output))
        if {*rows} != {tokens} or math.prod(self.weights.shape) != tokens * slots:
            raise ValueError(f"rows or weights are not those of {tokens} tokens")
        ports = (self.rows, self.ids, self.weights, self.output)
        if not {port.element for port in ports} <= ELEMENT_TYPES.keys():
            raise ValueError("its ports have elements that there are not")
        return self


class _Header(_Strict):
    routed: Routed
    sizes: tuple[_Size, ...]
    """Bytes of the programs."""
    literals: dict[str, _Size]
    """Bytes of weights that are in no file."""


@dataclass(frozen=True, slots=True)
class RoutedPrograms:
    """A mixture, the programs of its experts, and weights that are in no file."""

    routed: Routed
    programs: Sequence[bytes | memoryview]
    literals: Mapping[str, bytes | memoryview]


def write_container(content: RoutedPrograms) -> bytes:
    """Put a mixture's programs into bytes."""
    header = _Header(
        routed=content.routed,
        sizes=tuple(map(len, content.programs)),
        literals={name: len(value) for name, value in content.literals.items()},
    )
    text = json.dumps(header.model_dump(), sort_keys=True).encode()
    made = bytearray(_HEAD.pack(MAGIC, len(text)) + text)
    for program in content.programs:
        made += bytes(-len(made) % _PAGE)
        made += program
    for name in sorted(content.literals):
        made += content.literals[name]
    return bytes(made)


def read_container(content: bytes | memoryview) -> RoutedPrograms:
    """Read a mixture's programs; they stay where they are.

    Raises:
        DeviceError: the bytes are no such container, or damaged.
    """
    raw = memoryview(content)
    header, at = _read_header(raw)
    programs: list[memoryview] = []
    for size in header.sizes:
        at += -at % _PAGE
        programs.append(_slice(raw, at, size))
        at += size
    literals: dict[str, memoryview] = {}
    for name, size in sorted(header.literals.items()):
        literals[name] = _slice(raw, at, size)
        at += size
    if at != len(raw):
        raise _damaged(f"{len(raw)} bytes, {at} are expected")
    if any(expert.program >= len(programs) for expert in header.routed.experts):
        raise _damaged("an expert's program is missing")
    return RoutedPrograms(header.routed, programs, literals)


def _read_header(raw: memoryview) -> tuple[_Header, int]:
    if len(raw) < _HEAD.size or bytes(raw[:8]) != MAGIC:
        raise _damaged("it does not begin as one")
    _, length = _HEAD.unpack(raw[: _HEAD.size])
    text = _slice(raw, _HEAD.size, length)
    try:
        table: Any = json.loads(bytes(text))
        return _Header.model_validate(table), _HEAD.size + length
    except (ValueError, RecursionError, ValidationError) as error:
        raise _damaged(f"its header cannot be read: {error}") from None


def _slice(raw: memoryview, begin: int, size: int) -> memoryview:
    if begin + size > len(raw):
        raise _damaged(f"it ends at {len(raw)}, within what is at {begin}")
    return raw[begin : begin + size]


def _damaged(why: str) -> DeviceError:
    return DeviceError(f"not a mixture in parts (HOST_ROUTED): {why}; compile it anew")
