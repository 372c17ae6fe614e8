"""The programs of a model's parts as a container: programs of functions, shared by calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field

from npuw_layer.backends.arena import ELEMENT_TYPES
from npuw_layer.backends.protocols import TensorInfo
from npuw_layer.storage.program_set import (
    Bytes,
    Dim,
    Entry,
    Literals,
    ProgramSetKind,
    Size,
    literal_sizes,
)


class Call(Entry):
    """A part of the model: a call of a function, with names for its inputs and outputs."""

    function: int = Field(ge=0)
    names: dict[str, str]
    """Names in the model of the function's ports: the model's ports, weights, or links; equal
    names are left out."""


class _Function(Entry):
    tag: str
    size: Size
    literals: dict[str, Size]
    """Bytes of each literal, in one call."""


class _Link(Entry):
    element: str
    shape: tuple[Dim, ...]

    @staticmethod
    def of(info: TensorInfo) -> _Link:
        return _Link(element=info.element, shape=info.shape)


class _Header(Entry):
    functions: tuple[_Function, ...] = Field(min_length=1)
    calls: tuple[Call, ...] = Field(min_length=1)
    links: dict[str, _Link]
    ports: tuple[str, ...]
    unread: dict[str, _Link]


@dataclass(frozen=True, slots=True)
class FunctionProgram:
    """A function: its group's tag, its program, and for each call the bytes of its literals."""

    tag: str
    program: Bytes
    literals: Literals


@dataclass(frozen=True, slots=True)
class PartPrograms:
    """The programs of a model's parts, and their calls."""

    functions: Sequence[FunctionProgram]
    calls: Sequence[Call]
    """Calls in execution order."""
    links: Mapping[str, TensorInfo]
    """Tensors passed from part to part."""
    ports: Sequence[str]
    """Names of the model's own inputs and outputs, in the model's order; other ports (weights,
    variables) follow."""
    unread: Mapping[str, TensorInfo]
    """Inputs of the model that no part reads."""


KIND = ProgramSetKind(b"NPUWPRT1", _Header, "a partitioned model")


def write_container(parts: PartPrograms) -> bytes:
    """Return parts as bytes."""
    header = _Header(
        functions=tuple(
            _Function(tag=one.tag, size=len(one.program), literals=literal_sizes(one.literals))
            for one in parts.functions
        ),
        calls=tuple(parts.calls),
        links={name: _Link.of(info) for name, info in parts.links.items()},
        ports=tuple(parts.ports),
        unread={name: _Link.of(info) for name, info in parts.unread.items()},
    )
    functions = parts.functions
    programs, literals = zip(*((one.program, one.literals) for one in functions), strict=True)
    return KIND.write(header, programs, literals)


def read_container(content: Bytes) -> PartPrograms:
    """Read parts; programs stay in place.

    Raises:
        DeviceError: the bytes are another format, or damaged.
    """
    opened = KIND.open(content)
    header = opened.header
    if {call.function for call in header.calls} != set(range(len(header.functions))):
        raise KIND.damaged("it calls a function that it does not contain")
    unknown = {
        one.element for one in (*header.links.values(), *header.unread.values())
    } - ELEMENT_TYPES.keys()
    if unknown:
        raise KIND.damaged(f"it has tensors of unknown types {', '.join(sorted(unknown))}")
    programs = opened.blobs(one.size for one in header.functions)
    counts = Counter(call.function for call in header.calls)
    functions = [
        FunctionProgram(one.tag, program, opened.literals(one.literals, counts[number]))
        for number, (one, program) in enumerate(zip(header.functions, programs, strict=True))
    ]
    opened.finish()
    links, unread = (
        {name: TensorInfo(name, one.element, one.shape) for name, one in infos.items()}
        for infos in (header.links, header.unread)
    )
    return PartPrograms(functions, header.calls, links, header.ports, unread)
