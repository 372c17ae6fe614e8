"""The pieces of a model as one piece of bytes, as a blob cache keeps them.

    magic        8 bytes
    length       u64, of the header
    header       JSON: how often the block runs, names, sizes
    blobs        prologue, block, epilogue, each at a multiple of a page
    literals     one after the other

It is read as what may be damaged: whatever does not fit is an error.
"""

from __future__ import annotations

import json
import struct
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from compiler_layer.pieces import CompiledPieces
from npuw_layer.errors import DeviceError

MAGIC = b"NPUWOFF1"
_HEAD = struct.Struct("<8sQ")
_PAGE = 4096


class _Header(BaseModel):
    """What the header says."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    count: int = Field(ge=1, le=1 << 16)
    blobs: tuple[int, int, int]
    """Bytes of each."""
    states: dict[str, tuple[str, ...]]
    weights: dict[str, tuple[str, ...]]
    literals: dict[str, int]
    """Bytes of each, in one repetition."""


def write_container(pieces: CompiledPieces) -> bytes:
    """Put pieces into bytes."""
    blobs = (pieces.prologue, pieces.block, pieces.epilogue)
    header = _Header(
        count=pieces.count,
        blobs=(len(blobs[0]), len(blobs[1]), len(blobs[2])),
        states=dict(pieces.states),
        weights=dict(pieces.weights),
        literals={name: len(values[0]) for name, values in pieces.literals.items()},
    )
    text = json.dumps(header.model_dump(), sort_keys=True).encode()
    made = bytearray(_HEAD.pack(MAGIC, len(text)) + text)
    for blob in blobs:
        made += bytes(-len(made) % _PAGE)
        made += blob
    for name in sorted(pieces.literals):
        made += b"".join(pieces.literals[name])
    return bytes(made)


def read_container(content: bytes | memoryview) -> CompiledPieces:
    """Read pieces; blobs stay where they are.

    Raises:
        DeviceError: the bytes are no such container, or damaged.
    """
    raw = memoryview(content)
    header, at = _read_header(raw)
    blobs: list[memoryview] = []
    for size in header.blobs:
        at += -at % _PAGE
        blobs.append(_slice(raw, at, size))
        at += size
    literals: dict[str, tuple[bytes, ...]] = {}
    for name, size in sorted(header.literals.items()):
        values = [_slice(raw, at + number * size, size) for number in range(header.count)]
        literals[name] = tuple(bytes(value) for value in values)
        at += header.count * size
    if at != len(raw):
        raise _damaged(f"{len(raw)} bytes, {at} are expected")
    prologue, block, epilogue = blobs
    return CompiledPieces(
        prologue, block, epilogue, header.count, header.states, header.weights, literals
    )


def _read_header(raw: memoryview) -> tuple[_Header, int]:
    if len(raw) < _HEAD.size or bytes(raw[:8]) != MAGIC:
        raise _damaged("it does not begin as one")
    _, length = _HEAD.unpack(raw[: _HEAD.size])
    text = _slice(raw, _HEAD.size, length)
    try:
        table: Any = json.loads(bytes(text))
        header = _Header.model_validate(table)
    except (ValueError, RecursionError, ValidationError) as error:
        raise _damaged(f"its header cannot be read: {error}") from None
    names = (*header.states.values(), *header.weights.values())
    if any(len(each) != header.count for each in names):
        raise _damaged(f"it does not name what each of its {header.count} layers has")
    if any(size < 0 for size in (*header.blobs, *header.literals.values())):
        raise _damaged("it has negative sizes")
    return header, _HEAD.size + length


def _slice(raw: memoryview, begin: int, size: int) -> memoryview:
    if begin + size > len(raw):
        raise _damaged(f"it ends at {len(raw)}, within what is at {begin}")
    return raw[begin : begin + size]


def _damaged(why: str) -> DeviceError:
    return DeviceError(f"not a model in pieces (NPUW_WEIGHTS_OFFLOAD): {why}; compile it anew")
