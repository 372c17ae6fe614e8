"""The bytes of a submodel that several devices may run.

First comes the program of the device that took it, as that device made it (so that a mapped file
serves it in place), then the graph as text, compressed, and a head that says whose program it is.
An exported one is without its graph, which names files by their paths.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, ValidationError

from npuw_layer.errors import DeviceError

_TAIL = struct.Struct("<QQ8s")
"""The lengths of graph and head, and the mark."""

_MAGIC = b"NPUWPLCD"
_MOST_TEXT = 1 << 30
"""Bytes of a graph's text; a damaged program must not fill the memory."""


class Head(BaseModel):
    """What is known of a submodel besides its program."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    submodel: str
    device: str
    config: dict[str, str]
    """What the compiler was told."""
    notes: tuple[str, ...] = ()
    """Why devices before this one did not take it."""


@dataclass(frozen=True, slots=True)
class StoredProgram:
    """A program, whose it is, and the static graph that it was made of."""

    head: Head
    program: bytes | memoryview
    graph: bytes | memoryview
    """Compressed; most programs run without anybody looking at it. Exported ones have none."""

    @staticmethod
    def of(head: Head, program: bytes, graph: str) -> StoredProgram:
        """Compress the graph."""
        return StoredProgram(head, program, zlib.compress(graph.encode(), 1))

    def to_bytes(self) -> bytes:
        """All of it; ``parse`` reads it."""
        head = self.head.model_dump_json().encode()
        tail = _TAIL.pack(len(self.graph), len(head), _MAGIC)
        return b"".join((self.program, self.graph, head, tail))

    @staticmethod
    def parse(data: bytes | memoryview) -> StoredProgram:
        """Read what ``to_bytes`` made, without copying the program.

        Raises:
            DeviceError: it is something else.
        """
        whole = memoryview(data)
        try:
            graph_size, head_size, mark = _TAIL.unpack_from(whole, len(whole) - _TAIL.size)
        except struct.error:
            raise DeviceError("not a program of NPUW_DEVICES: too short") from None
        end = len(whole) - _TAIL.size
        if mark != _MAGIC or graph_size + head_size > end:
            raise DeviceError("not a program of NPUW_DEVICES; compile it anew")
        middle, begin = end - head_size, end - head_size - graph_size
        try:
            head = Head.model_validate_json(bytes(whole[middle:end]))
        except ValidationError:
            raise DeviceError("a program of NPUW_DEVICES is damaged; compile it anew") from None
        return StoredProgram(head, whole[:begin], whole[begin:middle])

    def graph_text(self) -> str:
        """The graph, for another device to compile.

        Raises:
            DeviceError: there is none, or it is damaged.
        """
        if not self.graph:
            raise DeviceError("an exported program is without the graph that others would compile")
        inflate = zlib.decompressobj()
        try:
            text = inflate.decompress(bytes(self.graph), _MOST_TEXT)
            if not inflate.eof:
                raise ValueError("incomplete")
            return text.decode()
        except (zlib.error, ValueError) as error:
            raise DeviceError(f"the graph of {self.head.submodel} is damaged: {error}") from None
