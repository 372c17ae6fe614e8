"""Bindings of programs to blocks; rebinding is rare, because it costs the time of some steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from npuw_layer.backends.level_zero_programs import RecordedProgram
from npuw_layer.backends.protocols import READ_PREFIX
from npuw_layer.llm.plan.stages import StageKind
from npuw_layer.llm.request.infer_request import InferRequest

BLOCK = 32
BLOCKS = {"NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "YES", "NPUW_LLM_PREFILL_CHUNK_SIZE": BLOCK}
VARIANTS = BLOCKS | {"NPUW_LLM_GENERATE_PYRAMID_STEPS": "72,128,192"}
IDS = np.random.default_rng(5).integers(0, 97, 400).tolist()


@pytest.fixture
def relocations(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Return a function that counts recordings and relocations of programs since its last call."""
    count = 0
    for name in ("_record", "_mutate"):
        real = getattr(RecordedProgram, name)

        def counted(self: RecordedProgram, *args: Any, real: Any = real) -> Any:
            nonlocal count
            count += 1
            return real(self, *args)

        monkeypatch.setattr(RecordedProgram, name, counted)

    def take() -> int:
        nonlocal count
        taken, count = count, 0
        return taken

    return take


def addresses(program: RecordedProgram) -> dict[str, int]:
    """Return the addresses at which a program reads its past."""
    return {
        tensor.name.removeprefix(READ_PREFIX): program._pointer(index)
        for index, tensor in enumerate(program._loaded.inputs)
        if tensor.name.startswith(READ_PREFIX)
    }


def variants(request: InferRequest) -> list[RecordedProgram]:
    """Return the programs of generate."""
    return [
        variant._programs[None][0] for variant in request._conversation.reader.generate._variants
    ]


def test_the_first_blocks_inputs_are_equal_in_all_variants(talks) -> None:
    """The smallest variant's past of 71 rows has two blocks and a tail.

    Source: docs/reference/npuw.md#block-cache.
    """
    models = talks(**VARIANTS).request._compiled.models
    ports = {
        stage.past: {info.name: info for info in model.inputs if READ_PREFIX in info.name}
        for stage, model in models.items()
        if stage.kind is StageKind.GENERATE
    }
    first = [
        {name: info for name, info in each.items() if name.endswith("_block_0")}
        for each in ports.values()
    ]
    assert len(first) == 3
    assert first[0] == first[1] == first[2]
    assert len(first[0]) == 4
    ends = {
        past: sorted({name.rpartition("_")[2] for name in each}) for past, each in ports.items()
    }
    assert ends[71] == ["0", "1", "tail"]
    assert ends[127] == ["0", "1", "2", "tail"]
    shapes = {info.shape for info in ports[71].values()}
    assert shapes == {(1, BLOCK, 2, 8), (1, 71 - 2 * BLOCK, 2, 8)}


def test_inputs_without_a_block_share_one_dummy(talks) -> None:
    talk = talks(**BLOCKS)
    talk.tell(IDS[:20])
    talk.tell([1])
    (program,) = variants(talk.request)
    cache = talk.request._conversation.cache
    held = len(cache._pool)
    bound = addresses(program)
    dummy = cache._blocks.dummy.address
    absent = {name for name, address in bound.items() if address == dummy}
    assert held == 2, "64 tokens in advance"
    assert absent == {f"{name}_block_{n}" for name in cache.names for n in ("2", "3", "4", "tail")}
    assert len({bound[name] for name in bound.keys() - absent}) == held * len(cache.names)
    assert not cache._blocks.dummy.data.any()


def test_switching_variants_only_binds_blocks(talks) -> None:
    """K and V do not move (docs/reference/npuw.md#block-cache)."""
    talk = talks(**VARIANTS)
    cache = talk.request._conversation.cache
    talk.tell(IDS[:60])
    for token in IDS[60:71]:
        talk.tell([token])
    before = {name: cache.read(name) for name in cache.names}
    copied, blocks = cache.copied_bytes, list(cache._pool._blocks)
    assert talk.request._conversation.reader.generate.variant == 1, (
        "128: a prompt leaves room for 64"
    )
    for token in IDS[71:128]:
        talk.tell([token])
    assert talk.request._conversation.reader.generate.variant == 2
    row = sum(values[:1].nbytes for values in before.values())
    cache.settle()
    assert cache.copied_bytes - copied == 57 * row, "each new row, once"
    for name, values in before.items():
        assert np.array_equal(cache.read(name)[:71], values)
    assert cache._pool._blocks[: len(blocks)] == blocks
    _, smaller, larger = (addresses(program) for program in variants(talk.request))
    for name in cache.names:
        assert smaller[f"{name}_block_0"] == larger[f"{name}_block_0"]


def test_complete_chunks_are_written_in_place(talks) -> None:
    talk = talks(**BLOCKS)
    cache = talk.request._conversation.cache
    talk.tell(IDS[: 3 * BLOCK])
    cache.settle()
    assert cache.copied_bytes == 0
    talk.tell([1])
    cache.settle()
    assert cache.copied_bytes == sum(cache.read(name)[:1].nbytes for name in cache.names)


def test_programs_are_rebound_once_per_reserve(talks, relocations) -> None:
    """Rebinding happens every 64 tokens after a prompt, not for each block of 32."""
    talk = talks(**BLOCKS)
    talk.tell(IDS[:70])
    relocations()
    counts = []
    for token in IDS[:121]:
        talk.tell([token])
        counts.append(relocations())
    assert sum(counts) == 2
    assert counts[0] == 1, "three blocks, and two in advance"


def test_an_equal_conversation_rebinds_nothing(talks, relocations) -> None:
    talk = talks(**BLOCKS)
    for _ in range(2):
        relocations()
        talk.said = 0
        talk.tell(IDS[:70])
        for token in IDS[:40]:
            talk.tell([token])
    assert relocations() == 0


def test_a_rewind_rebinds_nothing(talks, relocations) -> None:
    talk = talks(**BLOCKS)
    talk.tell(IDS[:100])
    talk.tell([1])
    relocations()
    for back in (1, 60, 10):
        talk.tell([3], back=back)
    assert relocations() == 0
