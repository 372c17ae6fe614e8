"""The programs of a model's parts as a package: of functions, which calls share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field

from npuw_layer.backends.arena import ELEMENT_TYPES
from npuw_layer.backends.protocols import TensorInfo
from npuw_layer.storage.package import Bytes, Dim, Entry, PackageKind, Size


class Call(Entry):
    """A part of the model: a function, and what its inputs and outputs are."""

    function: int = Field(ge=0)
    names: dict[str, str]
    """For ports of the function what they are in the model: its own ports, weights, or links; those
    that are called the same are left out."""


class _Function(Entry):
    tag: str
    size: Size
    literals: dict[str, Size]
    """Bytes of each, in one call."""


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
    literals: Mapping[str, Sequence[Bytes]]


@dataclass(frozen=True, slots=True)
class Parts:
    """The programs of a model's parts, and how they follow one another."""

    functions: Sequence[FunctionProgram]
    calls: Sequence[Call]
    """In the order in which they run."""
    links: Mapping[str, TensorInfo]
    """What goes from part to part."""
    ports: Sequence[str]
    """The model's own inputs and outputs by name, in the model's order; what is not among them
    (weights, variables) comes behind."""
    unread: Mapping[str, TensorInfo]
    """Inputs of the model that no part reads."""


_KIND = PackageKind(b"NPUWPRT1", _Header, "a model in parts")


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
        links={name: _Link.of(info) for name, info in parts.links.items()},
        ports=tuple(parts.ports),
        unread={name: _Link.of(info) for name, info in parts.unread.items()},
    )
    literals = (
        value
        for one in parts.functions
        for name in sorted(one.literals)
        for value in one.literals[name]
    )
    return _KIND.write(header, (one.program for one in parts.functions), literals)


def is_container(content: Bytes) -> bool:
    """Whether bytes are those of a model in parts."""
    return _KIND.begins(content)


def read_container(content: Bytes) -> Parts:
    """Read parts; programs stay where they are.

    Raises:
        DeviceError: the bytes are no such container, or damaged.
    """
    package = _KIND.open(content)
    header = package.header
    if {call.function for call in header.calls} != set(range(len(header.functions))):
        raise _KIND.damaged("it calls other functions than it has")
    unknown = {
        one.element for one in (*header.links.values(), *header.unread.values())
    } - ELEMENT_TYPES.keys()
    if unknown:
        raise _KIND.damaged(f"tensors of {', '.join(sorted(unknown))}")
    programs = [package.blob(one.size) for one in header.functions]
    functions: list[FunctionProgram] = []
    for number, (one, program) in enumerate(zip(header.functions, programs, strict=True)):
        count = sum(call.function == number for call in header.calls)
        literals = {
            name: [package.literal(size) for _ in range(count)]
            for name, size in sorted(one.literals.items())
        }
        functions.append(FunctionProgram(one.tag, program, literals))
    package.finish()
    links, unread = (
        {name: TensorInfo(name, one.element, one.shape) for name, one in infos.items()}
        for infos in (header.links, header.unread)
    )
    return Parts(functions, header.calls, links, header.ports, unread)
