"""Device memory of a cache in blocks follows the number of tokens."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.npuw.splitting import split

from compiler_layer.builder import GraphBuilder
from npuw_layer import Core
from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.backends.level_zero import LevelZeroDevice
from npuw_layer.backends.level_zero_memory import DeviceMemory
from npuw_layer.backends.level_zero_programs import RecordedProgram
from npuw_layer.errors import BlobError, DeviceError, ModelError, OptionError
from npuw_layer.llm.imported_ports import check_ports
from npuw_layer.llm.kv.kv_layout import KVLayout
from npuw_layer.llm.request import state_file
from npuw_layer.options import parse_options
from npuw_layer.plan import plan_model
from npuw_layer.storage.read_model import read_model

BLOCK = 16
OPTION = "NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE"
BLOCKS = {
    OPTION: "YES",
    "NPUW_LLM_PREFILL_CHUNK_SIZE": BLOCK,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
}
SMALL = {
    "NPUW_LLM_MAX_PROMPT_LEN": 128,
    "INFERENCE_PRECISION_HINT": "f32",
    "NPUW_LLM_ENABLE_CONTINUOUS_PREFILL": "YES",
}
IDS = np.random.default_rng(5).integers(0, 97, 400).tolist()

BLOCK_BYTES = 4 * BLOCK * 2 * 8 * 4
"""Four variables of two heads, eight wide, f32."""
DUMMY_BYTES = BLOCK * 2 * 8 * 4


def taken(request: Any) -> int:
    """Return the number of blocks of a conversation."""
    blocks, rest = divmod(request.memory().kv_cache - DUMMY_BYTES, BLOCK_BYTES)
    assert rest == 0
    return blocks


def test_the_bytes_follow_the_number_of_tokens(talks) -> None:
    """A reserve of 64 tokens is allocated at first, and whenever more blocks are bound."""
    talk = talks(**BLOCKS)
    device = talk.request._compiled.device
    assert taken(talk.request) == 4, "the reserve"
    empty = device.allocated_bytes
    for said, blocks in ((10, 4), (40, 4), (100, 11)):
        talk.reset()
        talk.tell(IDS[:said])
        talk.tell([1])
        assert taken(talk.request) == blocks
    grown = device.allocated_bytes
    assert grown > empty
    talk.reset()
    assert taken(talk.request) == 5, "for the next token and the reserve"
    assert device.allocated_bytes < grown


def test_a_full_conversation_takes_as_much_as_a_contiguous_cache(talks) -> None:
    talk = talks(**BLOCKS)
    talk.tell(IDS[:128])
    for token in IDS[128:191]:
        talk.tell([token])
    assert taken(talk.request) == 192 // BLOCK


@pytest.mark.matrix
@pytest.mark.parametrize("precision", ["", "i8"])
def test_a_plan_shows_the_bytes_of_a_full_cache(talks, tiny: Path, precision: str) -> None:
    options = SMALL | BLOCKS | {"KV_CACHE_PRECISION": precision}
    cache = talks(**options).request._conversation.cache
    plan = plan_model(tiny, parse_options(options), None)
    planned = {item.name: item.nbytes for item in plan.memory}
    assert planned["K and V cache"] == cache.most_bytes


def test_each_conversation_has_its_own_blocks(talks) -> None:
    one, other = talks(**BLOCKS), talks(**BLOCKS)
    heard = [one.tell(IDS[:100]).copy(), other.tell(IDS[50:90]).copy()]
    heard += [one.tell([1]).copy(), other.tell([1]).copy()]
    pools = [talk.request._conversation.cache._pool for talk in (one, other)]
    first, second = ({block.memory.address for block in pool._blocks} for pool in pools)
    assert not first & second
    assert len(first) > len(second)
    alone = talks(**BLOCKS)
    assert np.array_equal(alone.tell(IDS[50:90]), heard[1])
    assert np.array_equal(alone.tell([1]), heard[3])


def test_the_memory_is_freed_with_the_conversation(tiny: Path) -> None:
    compiled = Core().compile_model(tiny, "NPU", {"NPUW_LLM_MAX_PROMPT_LEN": 128, **BLOCKS})
    device = compiled._compiled.device
    compiled.create_infer_request()  # the weights stay
    gc.collect()
    before = device.allocated_bytes
    request = compiled.create_infer_request()
    assert device.allocated_bytes > before
    del request
    gc.collect()
    assert device.allocated_bytes <= before


def test_rows_of_a_failed_prompt_are_never_read(talks, monkeypatch) -> None:
    """Blocks that stay may have any content, even those that are bound but not needed."""
    talk, fresh = talks(**BLOCKS), talks(**BLOCKS)
    talk.tell(IDS[:120])
    talk.tell([1])
    cache = talk.request._conversation.cache

    def fail(self: RecordedProgram) -> None:
        for block in cache._pool._blocks:
            for stack in block.stacks:
                stack[...] = np.inf
        raise DeviceError("lost")

    with monkeypatch.context() as patched:
        patched.setattr(RecordedProgram, "_recorded", fail)
        with pytest.raises(DeviceError, match="lost"):
            talk.tell(IDS[:1])
    talk.reset()
    for token in range(40):
        assert np.array_equal(talk.tell([token]), fresh.tell([token]))


def test_the_error_without_chunks_names_the_option(tiny: Path) -> None:
    for options in ({}, {"NPUW_LLM_PREFILL_HINT": "STATIC", "NPUW_LLM_PREFILL_CHUNK_SIZE": 16}):
        with pytest.raises(OptionError, match=f"{OPTION}.*prompts are read whole.*CHUNK_SIZE"):
            Core().compile_model(tiny, "NPU", {OPTION: "YES"} | options)


def test_the_option_is_readable_and_off_by_default(tiny: Path) -> None:
    assert parse_options({}).enable_block_based_kv_cache is False
    compiled = Core().compile_model(tiny, "NPU", {"NPUW_LLM_MAX_PROMPT_LEN": 128, **BLOCKS})
    assert compiled.get_property(OPTION) is True


def test_a_cache_that_attention_does_not_read_directly_cannot_be_in_blocks(tiny: Path) -> None:
    model = read_model(tiny)
    read = model.variables()[0].read
    assert read is not None
    uses = list(read.output.uses)
    g = GraphBuilder(model, uses[0].operation)
    doubled = g.times(read.output, 2.0)
    for use in uses:
        use.operation.operands[use.index] = doubled
    name = read.variable_id.data
    with pytest.raises(ModelError, match=f"{OPTION}: attention does not read '{name}' as stored"):
        split(model, 1, 31, layout=KVLayout(block=16))


def test_a_saved_conversation_continues_with_or_without_blocks(talks, tmp_path: Path) -> None:
    blocks, piece = talks(**BLOCKS), talks()
    for source, target in ((blocks, piece), (piece, blocks)):
        source.reset()
        source.tell(IDS[:90])
        source.request.save_state(tmp_path / "talk")
        target.request.load_state(tmp_path / "talk")
        target.said = 90
        found, expected = target.tell([7]), source.tell([7])
        assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


def test_a_saved_conversation_may_be_longer_than_the_present_one(
    talks, tmp_path: Path, monkeypatch
) -> None:
    """The limit for a file is a full cache, not the present number of blocks."""
    monkeypatch.setattr(state_file, "_MAX_HEADER", 10_000)
    source, target = talks(**BLOCKS), talks(**BLOCKS)
    source.tell(IDS[:120])
    source.request.save_state(tmp_path / "talk")
    assert (tmp_path / "talk").stat().st_size > target.request.memory().kv_cache + 10_000
    target.request.load_state(tmp_path / "talk")
    target.said = 120
    assert np.array_equal(target.tell([7]), source.tell([7]))


def test_an_exported_model_keeps_blocks(tall: Path, tmp_path: Path) -> None:
    options = {"NPUW_LLM_MAX_PROMPT_LEN": 64, **BLOCKS}
    compiled = Core().compile_model(tall, "NPU", options)
    compiled.export_model(tmp_path / "tall.blob")
    imported = Core().import_model(tmp_path / "tall.blob", "NPU", {"WEIGHTS_PATH": str(tall)})
    assert imported.get_property(OPTION) is True
    heard = []
    for model in (compiled, imported):
        request = model.create_infer_request()
        heard.append(say(request, IDS[:40], 0))
    assert np.array_equal(*heard)


def test_a_program_with_other_blocks_is_rejected(talks) -> None:
    compiled = talks(**BLOCKS, NPUW_LLM_SHARED_HEAD="NO").request._compiled
    stage = compiled.plan.generate[-1]
    model, options = compiled.models[stage], compiled.options
    check_ports([stage], [model], options)
    for change in ({"prefill_chunk_size": 32}, {"enable_block_based_kv_cache": False}):
        with pytest.raises(BlobError, match=f"{stage.name} has .*other"):
            check_ports([stage], [model], options.model_copy(update=change))


class Scarce(LevelZeroDevice):
    """A device whose memory can be exhausted."""

    left = sys.maxsize

    def allocate(self, nbytes: int) -> DeviceMemory:
        if nbytes > self.left:
            raise DeviceError("no memory left")
        return super().allocate(nbytes)


@pytest.mark.long
def test_without_memory_a_step_fails_and_can_be_repeated(tiny: Path, tmp_path: Path) -> None:
    """A reserve is not required: allocated blocks are used up first."""
    device, config = Scarce(StaticCompiler(), "4000"), SMALL | BLOCKS
    scarce, plenty = (
        core.compile_model(tiny, "NPU", config).create_infer_request()
        for core in (Core(device=device), Core())
    )
    said = 50
    for request in (scarce, plenty):
        say(request, IDS[:said], 0)
    device.left = 0
    while said < 4 * BLOCK:
        assert np.array_equal(say(scarce, [1], said), say(plenty, [1], said))
        said += 1
    assert taken(scarce) == 4, "the prompt's blocks"
    with pytest.raises(DeviceError, match="no memory left"):
        say(scarce, [1], said)
    expected = say(plenty, [1], said)
    plenty.save_state(tmp_path / "talk")
    with pytest.raises(DeviceError, match="no memory left"):
        scarce.load_state(tmp_path / "talk")
    device.left = sys.maxsize
    assert np.array_equal(say(scarce, [1], said), expected)


def say(request: Any, ids: list[int], begin: int) -> np.ndarray:
    """Read tokens from a position on; return the last token's logits."""
    count = len(ids)
    inputs = {
        "input_ids": np.array([ids]),
        "attention_mask": np.ones((1, begin + count), np.int64),
        "position_ids": np.arange(begin, begin + count)[None],
    }
    return request.infer(inputs)["logits"][0, -1].copy()


def test_blocks_allocated_again_elsewhere_are_rebound(talks) -> None:
    """During a short conversation between two long ones, others take the freed memory."""
    talk, fresh = talks(**BLOCKS), talks(**BLOCKS)
    device, cache = talk.request._compiled.device, talk.request._conversation.cache
    talk.tell(IDS[:120])
    talk.tell([1])
    before = [block.memory.address for block in cache._pool._blocks]
    talk.said = 0
    talk.tell(IDS[:9])
    others = [device.allocate(BLOCK_BYTES) for _ in range(12)]
    talk.said = 0
    assert np.array_equal(talk.tell(IDS[100:220]), fresh.tell(IDS[100:220]))
    for token in range(60):
        assert np.array_equal(talk.tell([token]), fresh.tell([token]))
    after = [block.memory.address for block in cache._pool._blocks]
    assert after[:4] == before[:4]
    assert after[6:] != before[6:]
    del others
