"""Bytes of a submodel that several devices may run.

The program of the accepting device comes first, unchanged, so that a mapped file serves it in
place. The compressed text of the graph follows, then a head that describes the program. An exported
submodel has no graph, because the graph names files by their paths.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, ValidationError

from npuw_layer.errors import DeviceError

_TAIL = struct.Struct("<QQ8s")
"""Tail of the bytes: lengths of graph and head, and the mark."""

_MAGIC = b"NPUWPLCD"
_MOST_TEXT = 1 << 30
"""Limit of a graph's text, bytes: a damaged program must not fill the memory."""


class StoredHeader(BaseModel):
    """Description of a submodel's program."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    submodel: str
    device: str
    config: dict[str, str]
    """Configuration of the compiler."""
    notes: tuple[str, ...] = ()
    """Reasons why earlier devices did not accept it."""


@dataclass(frozen=True, slots=True)
class StoredProgram:
    """A program, its description, and its static graph."""

    head: StoredHeader
    program: bytes | memoryview
    graph: bytes | memoryview
    """Compressed text of the graph, rarely needed; empty in exported programs."""

    def to_bytes(self) -> bytes:
        """Return all bytes, which ``parse`` reads."""
        head = self.head.model_dump_json().encode()
        tail = _TAIL.pack(len(self.graph), len(head), _MAGIC)
        return b"".join((self.program, self.graph, head, tail))

    @staticmethod
    def parse(data: bytes | memoryview) -> StoredProgram:
        """Read the bytes of ``to_bytes``, without copying the program.

        Raises:
            DeviceError: the bytes are not a stored program.
        """
        whole = memoryview(data)
        try:
            graph_size, head_size, mark = _TAIL.unpack_from(whole, len(whole) - _TAIL.size)
        except struct.error:
            raise DeviceError("not a program of NPUW_DEVICES (too short); compile again") from None
        end = len(whole) - _TAIL.size
        if mark != _MAGIC or graph_size + head_size > end:
            raise DeviceError("not a program of NPUW_DEVICES; compile it again")
        middle, begin = end - head_size, end - head_size - graph_size
        try:
            head = StoredHeader.model_validate_json(bytes(whole[middle:end]))
        except ValidationError:
            raise DeviceError("a program of NPUW_DEVICES is damaged; compile it again") from None
        return StoredProgram(head, whole[:begin], whole[begin:middle])

    def graph_text(self) -> str:
        """Return the graph's text, for another device to compile.

        Raises:
            DeviceError: the graph is missing or damaged.
        """
        if not self.graph:
            raise DeviceError("an exported program has no graph that another device could compile")
        inflate = zlib.decompressobj()
        try:
            text = inflate.decompress(bytes(self.graph), _MOST_TEXT)
            if not inflate.eof:
                raise ValueError("incomplete")
            return text.decode()
        except (zlib.error, ValueError) as error:
            raise DeviceError(f"the graph of {self.head.submodel} is damaged: {error}") from None
