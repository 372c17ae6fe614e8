"""A partitioned mixture as a container of its experts' programs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from pydantic import Field, model_validator

from npuw_layer.backends.arena import ELEMENT_TYPES
from npuw_layer.backends.protocols import TensorInfo
from npuw_layer.storage.program_set import Bytes, Dim, Entry, ProgramSetKind, Size, literal_sizes


class PortEntry(Entry):
    """An input or output."""

    name: str
    element: str
    shape: tuple[Dim, ...]

    @property
    def info(self) -> TensorInfo:
        """The port."""
        return TensorInfo(self.name, self.element, self.shape)

    @staticmethod
    def of(info: TensorInfo) -> PortEntry:
        """Return the entry of a port."""
        return PortEntry(name=info.name, element=info.element, shape=info.shape)


class ExpertEntry(Entry):
    """One expert."""

    number: int = Field(ge=0)
    program: int = Field(ge=0)
    names: dict[str, str]
    """Names in the mixture of the program's weight inputs, for this expert; equal names are left
    out."""


class Routed(Entry):
    """Description of a mixture and its experts.

    Attributes:
        rows: T rows of C channels, as [..., C].
        ids: the chosen experts, [T, K].
        weights: the chosen experts' router weights, T x K.
        output: the sum, T rows of H channels, as [..., H].
        count: rows of an expert's program.
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
            raise ValueError("ids must be [tokens, slots]")
        tokens, slots = self.ids.shape
        rows = (math.prod(port.shape[:-1]) for port in (self.rows, self.output))
        if {*rows} != {tokens} or math.prod(self.weights.shape) != tokens * slots:
            raise ValueError(f"rows or weights are of another count than {tokens} tokens")
        ports = (self.rows, self.ids, self.weights, self.output)
        if not {port.element for port in ports} <= ELEMENT_TYPES.keys():
            raise ValueError("its ports have unknown element types")
        return self


class _Header(Entry):
    routed: Routed
    sizes: tuple[Size, ...]
    """Bytes of the programs."""
    literals: dict[str, Size]
    """Bytes of weights that are in no file."""


@dataclass(frozen=True, slots=True)
class RoutedPrograms:
    """A mixture, the programs of its experts, and weights that are in no file."""

    routed: Routed
    programs: Sequence[Bytes]
    literals: Mapping[str, Bytes]


_KIND = ProgramSetKind(b"NPUWMOE1", _Header, "a partitioned mixture (HOST_ROUTED)")


def write_container(content: RoutedPrograms) -> bytes:
    """Return a mixture's programs as bytes."""
    literals = {name: [value] for name, value in content.literals.items()}
    header = _Header(
        routed=content.routed,
        sizes=tuple(map(len, content.programs)),
        literals=literal_sizes(literals),
    )
    return _KIND.write(header, content.programs, [literals])


def read_container(content: Bytes) -> RoutedPrograms:
    """Read a mixture's programs; they stay in place.

    Raises:
        DeviceError: the bytes are another format, or damaged.
    """
    opened = _KIND.open(content)
    header = opened.header
    programs = opened.blobs(header.sizes)
    literals = {name: value for name, (value,) in opened.literals(header.literals).items()}
    opened.finish()
    if any(expert.program >= len(programs) for expert in header.routed.experts):
        raise _KIND.damaged("an expert's program is missing")
    return RoutedPrograms(header.routed, programs, literals)
