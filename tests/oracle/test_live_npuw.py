"""Our stack compared to the real NPUW, live: the same IR, options and tokens.

The real NPUW is the ``openvino`` package's NPU plugin, which splits, pads, chunks and keeps caches
without an NPU if its submodels run on OpenVINO's CPU plugin.

The last tests show its defects, and compare this stack to the interpreter instead. If one of these
tests fails with a newer ``openvino``, the defect is fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.covering import each_architecture_once
from tests.oracle.both import CHUNKED, LENGTHS, Both, Chat, distance, ours

from compiler_layer.frontends.huggingface import read_folder
from compiler_layer.writers.openvino_ir import write_ir
from npuw_layer.errors import CapacityError, PromptTooLong

pytestmark = pytest.mark.oracle

GOLDENS = Path(__file__).resolve().parent.parent / "goldens"
EXPORTED = GOLDENS / "exported"
NAMES = sorted(path.name.removesuffix(".xml.xz") for path in EXPORTED.glob("*.xml.xz"))

BEYOND_NPUW = {"bloom": "at", "mpt": "at", "dbrx": "dynamic", "mixtral": "dynamic"} | {
    "qwen2_moe": "dynamic"
}
"""Architectures that NPUW does not run, and a word of its message: attention biased by distance,
as positions are missing; experts whose rows stay dynamic."""

WRONG_IN_NPUW = ("gpt_neo", "llama4")
"""Architectures that NPUW computes from padded lengths, with errors of 0.4 and NaN. OpenVINO's CPU
plugin, without padding, agrees with this stack (tests/stack/test_exported_ir.py)."""

WRITTEN = [
    *("gpt2", "gpt_neox", "gpt_neox_serial", "granite", "llama_biased", "llama_linear"),
    *("llama_yarn", "olmo2", "phi3_longrope", "qwen3"),
]
"""Families with an IR of this project's writer; NPUW recognises windows only as exporters write."""


@pytest.fixture(scope="module")
def exported(
    load_module: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Return a function that restores an exported IR, with random weights."""
    restore = load_module(EXPORTED / "restore.py").restore
    return lambda name: restore(EXPORTED, name, tmp_path_factory.mktemp(name))


def is_beyond_npuw(name: str) -> bool:
    return name.rpartition("_")[0] in BEYOND_NPUW


def is_wrong_in_npuw(name: str) -> bool:
    return name.rpartition("_")[0] in WRONG_IN_NPUW


@pytest.mark.parametrize("name", [*filter(is_wrong_in_npuw, NAMES)])
def test_npuw_computes_two_architectures_from_padded_lengths(
    exported: Callable[[str], Path], name: str
) -> None:
    with pytest.raises(AssertionError, match="100 tokens at 100"):
        Both(exported(name), CHUNKED).check(np.arange(10, 110))


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in each_architecture_once(NAMES, first=2)
        if not is_beyond_npuw(name) and not is_wrong_in_npuw(name)
    ],
)
def test_tokens_of_each_exported_architecture_equal_npuws(
    exported: Callable[[str], Path], name: str
) -> None:
    """A prompt of several chunks, longer than any window, and 24 generated tokens."""
    both = Both(exported(name), CHUNKED)
    both.check_answer(both.draw(len(name), 100), 24)


@pytest.mark.parametrize("name", WRITTEN)
def test_tokens_of_each_family_written_as_ir_equal_npuws(
    load_module: Callable[[Path], Any], name: str, tmp_path: Path
) -> None:
    families = load_module(GOLDENS / "families.py")
    folder = families.write_folder(tmp_path / "hf", families.descriptions()[name])
    write_ir(read_folder(folder), tmp_path / "openvino_model.xml")
    both = Both(tmp_path / "openvino_model.xml", CHUNKED)
    both.check_answer(both.draw(len(name), 77), 24)


@pytest.mark.parametrize("model", ["demo_ir", "llama_8m_ir"])
@pytest.mark.parametrize("options", [LENGTHS, CHUNKED], ids=["whole", "chunked"])
def test_tokens_of_consecutive_prompts_equal_npuws(
    request: pytest.FixtureRequest, model: str, options: dict[str, Any]
) -> None:
    both = Both(request.getfixturevalue(model), options)
    for seed, count in enumerate((60, 3, 128, 2, 33)):
        both.reset()
        both.check_answer(both.draw(seed, count), 12)


@pytest.mark.parametrize(
    "own",
    [
        {"++NPUW_LLM_GENERATE_CONFIG": {"NPUW_DEVICES": "CPU"}},
        {"++NPUW_LLM_PREFILL_CONFIG": {"NPUW_DEVICES": "NPU,CPU", "NPUW_FALLBACK_EXEC": "NO"}},
        {"++NPUW_LLM_PREFILL_CONFIG": {"NPUW_ONLINE_PIPELINE": "JUST"}},
        {"++NPUW_LLM_GENERATE_CONFIG": {"NPUW_ONLINE_PIPELINE": "JUST"}},
        {"++NPUW_LLM_GENERATE_CONFIG": {"NPUW_ACC_CHECK": "YES", "NPUW_ACC_DEVICE": "CPU"}},
        {"++NPUW_LLM_SHARED_HEAD_CONFIG": {"NPUW_DEVICES": "CPU"}},
    ],
    ids=lambda own: " ".join(f"{name[11:-7]} {given}" for name, given in own.items()),
)
def test_options_of_one_stage_are_accepted_by_both(
    exported: Callable[[str], Path], own: dict[str, Any]
) -> None:
    """Without an NPU, all stages of the real NPUW run on its CPU plugin.

    Of its partitioning pipelines only JUST computes correctly there, in either stage.
    """
    both = Both(exported("llama_int8"), CHUNKED | own)
    both.check_answer(both.draw(5, 70), 12)


@pytest.fixture(scope="module")
def sixteens(exported: Callable[[str], Path]) -> Both:
    return Both(exported("qwen3_fp16"), LENGTHS | {"NPUW_LLM_PREFILL_CHUNK_SIZE": 16})


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 111, 112, 127, 128])
def test_tokens_of_prompts_around_chunk_borders_equal_npuws(sixteens: Both, count: int) -> None:
    sixteens.reset()
    sixteens.check_answer(sixteens.draw(count, count), 4)


def test_padding_by_the_caller_is_handled_alike(exported: Callable[[str], Path]) -> None:
    """A mask that begins with zeros, with a whole prefill (docs/reference/npuw.md#prefill)."""
    both = Both(exported("llama_fp16"), LENGTHS)
    ids = both.draw(3, 40)
    inputs = {
        "input_ids": ids[None],
        "attention_mask": np.repeat([[0, 1]], [5, 35], axis=1).astype(np.int64),
        "position_ids": np.maximum(np.arange(-5, 35), 0)[None],
        "beam_idx": np.zeros(1, np.int32),
    }
    found = []
    for chat in (both.theirs, both.ours):
        chat.request.infer(inputs)
        found.append(np.array(chat.request.get_tensor("logits").data[0, -1]))
    assert distance(found[1], found[0]) <= 1e-4


def test_the_cache_is_full_after_the_same_number_of_tokens(exported: Callable[[str], Path]) -> None:
    """100 and 10 are rounded to 128 and 64: exactly 142 tokens follow after 50.

    Source: docs/reference/npuw.md#lengths.
    """
    options = {"NPUW_LLM_MAX_PROMPT_LEN": 100, "NPUW_LLM_MIN_RESPONSE_LEN": 10}
    both = Both(exported("llama_fp16"), options)
    ids = both.draw(0, 50)
    answers: list[list[int]] = []
    for chat, error in ((both.theirs, RuntimeError), (both.ours, CapacityError)):
        said: list[int] = []
        with pytest.raises(error, match="KV-Cache is full"):
            said.extend(chat.greedy(ids, 1000))
        answers.append(said)
    assert len(answers[0]) == 142
    assert answers[1] == answers[0]


@pytest.mark.parametrize("chunk", [0, 32])
def test_a_prompt_that_is_too_long_is_rejected_with_the_rounded_limit(
    exported: Callable[[str], Path], chunk: int
) -> None:
    options = {"NPUW_LLM_MAX_PROMPT_LEN": 100, "NPUW_LLM_PREFILL_CHUNK_SIZE": chunk}
    both = Both(exported("llama_fp16"), options)
    ids = both.draw(0, 129)
    for chat, error in ((both.theirs, RuntimeError), (both.ours, PromptTooLong)):
        with pytest.raises(error, match="128") as caught:
            chat.tell(ids)
        assert "MAX_PROMPT_LEN" in str(caught.value)
    both.reset()
    both.check_answer(ids[:128], 3)


def test_rewinding_one_token_equals_npuw(exported: Callable[[str], Path]) -> None:
    """The last token is replaced, as when a sampler rejects it."""
    both = Both(exported("llama_fp16"), CHUNKED)
    both.check_answer(both.draw(0, 60), 5)
    for seed in range(6):
        both.check(both.draw(seed, 1), back=1)


# Defects of the real NPUW that this stack must not have.


def test_a_deep_rewind_is_exact_here_and_not_in_npuw(exported: Callable[[str], Path]) -> None:
    """The real NPUW attends to rewound tokens (docs/reference/npuw.md#rewinding)."""
    path = exported("llama_fp16")
    both = Both(path, CHUNKED)
    prompt, answer = both.draw(0, 60), both.draw(1, 40)
    for ids in (prompt, *answer[:, None]):
        both.check(ids)
    fresh = Chat(ours(path, CHUNKED, "CPU"))
    fresh.tell(np.concatenate([prompt, answer[:5]]))
    again = both.draw(2, 1)
    expected = fresh.tell(again)
    found, theirs = (chat.tell(again, back=35) for chat in (both.ours, both.theirs))
    assert distance(found, expected) <= 1e-4
    assert distance(theirs, expected) > 1e-3, "fixed in NPUW: update the README"


def test_two_requests_are_independent_here_and_not_in_npuw(exported: Callable[[str], Path]) -> None:
    """The real NPUW counts the tokens of both together (docs/reference/npuw.md#rewinding), and
    fails, or its logits differ."""
    path = exported("llama_fp16")
    both = Both(path, CHUNKED)
    prompts, step = [both.draw(0, 60), both.draw(1, 20)], both.draw(2, 1)
    alone = [Chat(ours(path, CHUNKED, "CPU")) for _ in prompts]
    expected = interleaved(alone, prompts, step)
    compiled = ours(path, CHUNKED)
    found = interleaved([Chat(compiled), Chat(compiled)], prompts, step)
    assert max(map(distance, found, expected)) <= 1e-4
    try:
        theirs = interleaved([Chat(both.real), Chat(both.real)], prompts, step)
    except RuntimeError:
        return
    worst = max(map(distance, theirs, expected))
    assert worst > 1e-3, "fixed in NPUW: update the README"


def interleaved(chats: list[Chat], prompts: list[np.ndarray], step: np.ndarray) -> list[np.ndarray]:
    """Run each request's prompt, then one more token in each."""
    for chat, prompt in zip(chats, prompts, strict=True):
        chat.tell(prompt)
    return [chat.tell(step) for chat in chats]


def test_a_second_conversation_can_begin_with_one_token_here(
    exported: Callable[[str], Path],
) -> None:
    """The real NPUW takes the token for a rewind, and attends to the earlier tokens.

    Source: docs/reference/npuw.md#starting-and-continuing.
    """
    path = exported("llama_fp16")
    both = Both(path, CHUNKED)
    fresh = Chat(ours(path, CHUNKED, "CPU"))
    one = both.draw(5, 1)
    expected = fresh.tell(one)
    both.check_answer(both.draw(0, 60), 3)
    both.reset()
    found, theirs = both.ours.tell(one), both.theirs.tell(one)
    assert distance(found, expected) <= 1e-4
    assert distance(theirs, expected) > 1e-3, "fixed in NPUW: update the README"


@pytest.mark.parametrize("name", [f"{name}_fp16" for name in BEYOND_NPUW])
def test_architectures_beyond_npuw_run_here(exported: Callable[[str], Path], name: str) -> None:
    path = exported(name)
    with pytest.raises(RuntimeError, match=BEYOND_NPUW[name.rpartition("_")[0]]):
        Both(path, CHUNKED).theirs.tell(np.arange(5))
    on_npu, on_cpu = (Chat(ours(path, CHUNKED, device)) for device in ("NPU", "CPU"))
    ids = np.random.default_rng(0).integers(0, 900, 70)
    for _ in range(4):
        expected = on_cpu.tell(ids)
        assert distance(on_npu.tell(ids), expected) <= 1e-4
        ids = np.array([int(expected.argmax())])
