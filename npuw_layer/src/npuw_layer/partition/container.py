"""The programs of a model's parts as one piece of bytes, as a blob cache keeps them.

    magic        8 bytes
    length       u64, of the header
    header       JSON: functions, calls, links
    programs     of the functions, each at a multiple of a page
    literals     of the functions, one after the other

It is read as what may be damaged: whatever does not fit is an error.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from npuw_layer.errors import DeviceError
from npuw_layer.llm.arena import ELEMENT_TYPES
from npuw_layer.ports import TensorInfo

MAGIC = b"NPUWPRT1"
_HEAD = struct.Struct("<8sQ")
_PAGE = 4096
_Size = Annotated[int, Field(ge=0, le=1 << 40)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Call(_Strict):
    """A part of the model: a function, and what its inputs and outputs are."""

    function: int = Field(ge=0)
    names: dict[str, str]
    """For ports of the function what they are in the model: its own ports, weights, or links; those
    that are called the same are left out."""


class _Function(_Strict):
    tag: str
    size: _Size
    literals: dict[str, _Size]
    """Bytes of each, in one call."""


class _Link(_Strict):
    element: str
    shape: tuple[Annotated[int, Field(ge=0, le=1 << 32)], ...]


class _Header(_Strict):
    functions: tuple[_Function, ...] = Field(min_length=1)
    calls: tuple[Call, ...] = Field(min_length=1)
    links: dict[str, _Link]


@dataclass(frozen=True, slots=True)
class FunctionProgram:
    """A function: its group's tag, its program, and for each call the bytes of its literals."""

    tag: str
    program: bytes | memoryview
    literals: Mapping[str, Sequence[bytes | memoryview]]


@dataclass(frozen=True, slots=True)
class Parts:
    """The programs of a model's parts, and how they follow one another."""

    functions: Sequence[FunctionProgram]
    calls: Sequence[Call]
    """In the order in which they run."""
    links: Mapping[str, TensorInfo]
    """What goes from part to part."""


def write_container(parts: Parts) -> bytes:
    """Put parts into bytes."""
    header = _Header(
        functions=tuple(
            _Function(
                tag=one.tag,
                size=len(one.program),
                literals={name: len(values[0]) for name, values in one.literals.items()},
            )
            for one in parts.functions
        ),
        calls=tuple(parts.calls),
        links={
            name: _Link(element=info.element, shape=info.shape)
            for name, info in parts.links.items()
        },
    )
    text = json.dumps(header.model_dump(), sort_keys=True).encode()
    made = bytearray(_HEAD.pack(MAGIC, len(text)) + text)
    for one in parts.functions:
        made += bytes(-len(made) % _PAGE)
        made += one.program
    for one in parts.functions:
        for name in sorted(one.literals):
            made += b"".join(one.literals[name])
    return bytes(made)


def is_container(content: bytes | memoryview) -> bool:
    """Whether bytes are those of a model in parts."""
    return bytes(content[:8]) == MAGIC


def read_container(content: bytes | memoryview) -> Parts:
    """Read parts; programs stay where they are.

    Raises:
        DeviceError: the bytes are no such container, or damaged.
    """
    raw = memoryview(content)
    header, at = _read_header(raw)
    programs: list[memoryview] = []
    for one in header.functions:
        at += -at % _PAGE
        programs.append(_slice(raw, at, one.size))
        at += one.size
    counts = [sum(call.function == n for call in header.calls) for n in range(len(programs))]
    functions: list[FunctionProgram] = []
    for one, program, count in zip(header.functions, programs, counts, strict=True):
        literals: dict[str, Sequence[memoryview]] = {}
        for name, size in sorted(one.literals.items()):
            literals[name] = [_slice(raw, at + number * size, size) for number in range(count)]
            at += count * size
        functions.append(FunctionProgram(one.tag, program, literals))
    if at != len(raw):
        raise _damaged(f"{len(raw)} bytes, {at} are expected")
    links = {name: TensorInfo(name, one.element, one.shape) for name, one in header.links.items()}
    return Parts(functions, header.calls, links)


def _read_header(raw: memoryview) -> tuple[_Header, int]:
    if len(raw) < _HEAD.size or not is_container(raw):
        raise _damaged("it does not begin as one")
    _, length = _HEAD.unpack(raw[: _HEAD.size])
    text = _slice(raw, _HEAD.size, length)
    try:
        table: Any = json.loads(bytes(text))
        header = _Header.model_validate(table)
    except (ValueError, RecursionError, ValidationError) as error:
        raise _damaged(f"its header cannot be read: {error}") from None
    if {call.function for call in header.calls} != set(range(len(header.functions))):
        raise _damaged("it calls other functions than it has")
    unknown = {link.element for link in header.links.values()} - set(ELEMENT_TYPES)
    if unknown:
        raise _damaged(f"links of {', '.join(sorted(unknown))}")
    return header, _HEAD.size + length


def _slice(raw: memoryview, begin: int, size: int) -> memoryview:
    if begin + size > len(raw):
        raise _damaged(f"it ends at {len(raw)}, within what is at {begin}")
    return raw[begin : begin + size]


def _damaged(why: str) -> DeviceError:
    return DeviceError(f"not a model in parts: {why}; compile it anew")
