"""Memory that a batching uses, by purpose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from npuw_layer.backends.protocols import HasAddress, Memory
from npuw_layer.batching.observed import MemoryRange
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.request.conversation import Conversation


def memory_map(compiled: CompiledLLM, places: Sequence[Conversation]) -> list[MemoryRange]:
    """Return weights, programs, caches and adapters; without inputs and outputs of programs.

    Args:
        compiled: the static models.
        places: conversations that hold caches, by number.
    """
    return [
        *_weights(compiled),
        *(
            MemoryRange(stage.name, "programs", len(program), None, None)
            for stage, program in compiled.programs.items()
        ),
        *(part for slot, place in enumerate(places) for part in _of_place(slot, place)),
        *_prefixes(compiled),
    ]


def _weights(compiled: CompiledLLM) -> Iterator[MemoryRange]:
    by_name: dict[str, list[Memory]] = {}
    for name, memory in compiled.bank.memories():
        by_name.setdefault(name, []).append(memory)
    for name, memories in by_name.items():
        yield _range(name, "weights", memories, None)


def _of_place(slot: int, place: Conversation) -> Iterator[MemoryRange]:
    yield _range(f"KV cache {slot}", "kv_cache", place.cache.memories, slot)
    if states := place.parts.nbytes(False):
        yield MemoryRange(f"states {slot}", "kv_cache", states, None, slot)
    if adapters := place.parts.nbytes(True):
        yield MemoryRange(f"adapters {slot}", "adapters", adapters, None, slot)


def _prefixes(compiled: CompiledLLM) -> Iterator[MemoryRange]:
    if compiled.prefixes is not None:
        nbytes = compiled.prefixes.nbytes
        yield MemoryRange("prefix cache (host memory)", "prefix_cache", nbytes, None, None)


def _range(
    name: str, kind: Literal["weights", "kv_cache"], memories: Sequence[Memory], slot: int | None
) -> MemoryRange:
    first = memories[0] if len(memories) == 1 else None
    address = first.address if isinstance(first, HasAddress) else None
    return MemoryRange(name, kind, sum(one.data.size for one in memories), address, slot)
