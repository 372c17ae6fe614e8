"""The parts of a model as a container: prologue, block and epilogue."""

from __future__ import annotations

from pydantic import Field

from compiler_layer.partition.compiled import CompiledParts
from npuw_layer.storage.program_set import Bytes, Entry, ProgramSetKind, Size, literal_sizes


class _Header(Entry):
    """Header of the container."""

    count: int = Field(ge=1, le=1 << 16)
    blobs: tuple[Size, Size, Size]
    """Bytes of each blob."""
    states: dict[str, tuple[str, ...]]
    weights: dict[str, tuple[str, ...]]
    literals: dict[str, Size]
    """Bytes of each literal, in one repetition."""


_KIND = ProgramSetKind(b"NPUWOFF1", _Header, "an offloaded model (NPUW_WEIGHTS_OFFLOAD)")


def write_container(parts: CompiledParts) -> bytes:
    """Return the parts as bytes."""
    blobs = (parts.prologue, parts.block, parts.epilogue)
    header = _Header(
        count=parts.count,
        blobs=(len(blobs[0]), len(blobs[1]), len(blobs[2])),
        states=dict(parts.states),
        weights=dict(parts.weights),
        literals=literal_sizes(parts.literals),
    )
    return _KIND.write(header, blobs, [parts.literals])


def read_container(content: Bytes) -> CompiledParts:
    """Read the parts; blobs stay in place.

    Raises:
        DeviceError: the bytes are another format, or damaged.
    """
    opened = _KIND.open(content)
    header = opened.header
    names = (*header.states.values(), *header.weights.values())
    if any(len(each) != header.count for each in names):
        raise _KIND.damaged(f"it lacks names of weights or variables for its {header.count} layers")
    prologue, block, epilogue = opened.blobs(header.blobs)
    found = opened.literals(header.literals, header.count)
    literals = {name: tuple(map(bytes, values)) for name, values in found.items()}
    opened.finish()
    return CompiledParts(
        prologue, block, epilogue, header.count, header.states, header.weights, literals
    )
