"""NPUW_LLM_ON_FULL on the in-memory runtime: turns that are left out, and chats that continue."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genai_layer import (
    ChatHistory,
    ConfigError,
    ContinuousBatchingPipeline,
    GenerationConfig,
    GenerationFinishReason,
    LLMPipeline,
    PromptError,
    SchedulerConfig,
)
from genai_layer.prompt import Chat
from genai_layer.serve.engine.activity import Activity, Commons
from genai_layer.serve.engine.text_model import ServedTextModel
from genai_layer.serve.limits import Limits
from genai_layer.serve.metrics import Metrics
from genai_layer.serve.models.opening import open_model
from genai_layer.serve.models.spec import ModelSpec
from genai_layer.serve.openai.tools.offer import Offer
from genai_layer.serve.openai.turn import prepare_turn
from genai_layer.testing.memory_batching import BatchingCore
from genai_layer.testing.memory_runtime import MemoryCore, MemoryRequest
from genai_layer.testing.toy import answering_core, ids_of

LENGTHS = {"MAX_PROMPT_LEN": 40, "MIN_RESPONSE_LEN": 10}
CAPACITY = 40 + 10 - 1
GREEDY = GenerationConfig(max_new_tokens=5, do_sample=False)

Reads = list[tuple[int, list[int]]]
"""Number of tokens before, and new tokens, of each inference."""


@pytest.fixture
def reads(monkeypatch) -> Reads:
    """Return the inferences of the in-memory runtime, as they are run."""
    found: Reads = []
    infer = MemoryRequest.infer

    def watched(request: MemoryRequest, inputs: Any, /) -> object:
        (ids,) = inputs["input_ids"].tolist()
        found.append((inputs["attention_mask"].shape[1] - len(ids), ids))
        return infer(request, inputs)

    monkeypatch.setattr(MemoryRequest, "infer", watched)
    return found


@pytest.fixture
def pipes(folder) -> Callable[..., LLMPipeline]:
    """Return a function that creates a pipeline with one answer."""

    def make(policy: str, answer: str = "hey") -> LLMPipeline:
        core = answering_core(answer, CAPACITY)
        return LLMPipeline(folder, "NPU", core=core, NPUW_LLM_ON_FULL=policy, **LENGTHS)

    return make


def chat(*texts: str, system: str = "be kind") -> ChatHistory:
    """Return a chat of questions and answers, in turn, after a system message."""
    roles = ("user", "assistant") * len(texts)
    messages = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=False)]
    return ChatHistory([{"role": "system", "content": system}, *messages])


def toy_ids(history: ChatHistory) -> list[int]:
    """Return a chat's ids by the toy's template, which has a token for each role and letter."""
    parts = [f"<|{one['role']}|>{one['content']}" for one in history.get_messages()]
    return ids_of("".join(parts) + "<|assistant|>")


ROLES = ("system", "user", "assistant", "tool")
MESSAGES = st.lists(st.tuples(st.sampled_from(ROLES), st.integers(0, 9)), min_size=1, max_size=9)


@given(MESSAGES, st.integers(0, 60))
def test_the_fewest_turns_are_left_out_and_no_turn_is_cut(spoken: list[Any], room: int) -> None:
    """A turn begins where a user speaks after others; a message of n letters has n + 1 tokens."""
    messages = [{"role": role, "content": str(at) * size} for at, (role, size) in enumerate(spoken)]
    history = ChatHistory(messages)
    history.set_tools([{"name": "search"}])
    found = Chat(history, encode).within(room)
    possible = [
        [one for at, one in enumerate(messages) if at >= begin or one["role"] == "system"]
        for begin in [0, *begins(messages)[1:]]
    ]
    fitting = [each for each in possible if len(encode(with_search(each))) <= room]
    expected = fitting[0] if fitting else possible[-1]
    assert found.ids == encode(with_search(expected))
    assert bool(found.left_out) == (expected != messages)


def encode(history: ChatHistory) -> list[int]:
    """Return a token for each message and each of its letters."""
    assert history.get_tools() == [{"name": "search"}]
    messages = history.get_messages()
    return [number for one in messages for number in (10, *map(int, one["content"]))]


def with_search(messages: list[dict[str, Any]]) -> ChatHistory:
    """Return a chat with a tool."""
    history = ChatHistory(messages)
    history.set_tools([{"name": "search"}])
    return history


def begins(messages: list[dict[str, Any]]) -> list[int]:
    """Return the places of the first messages of turns."""
    said = [(at, one["role"]) for at, one in enumerate(messages) if one["role"] != "system"]
    before = ["", *(role for _, role in said)]
    return [
        at
        for (at, role), last in zip(said, before, strict=False)
        if not last or (role == "user" and last != "user")
    ]


def test_a_chat_keeps_its_system_message_and_whole_turns(pipes, reads: Reads, caplog) -> None:
    history = chat("the very first", "one", "second", "two", "third")
    pipe = pipes("TRUNCATE")
    with caplog.at_level(logging.WARNING):
        assert str(pipe.generate(history, GREEDY)) == "hey"
    assert reads[0] == (0, toy_ids(chat("second", "two", "third")))
    assert pipe.execution_report()["left out"] == "the oldest 2 of 6 messages"
    (record,) = caplog.records
    assert "the oldest 2 of 6 messages are left out of a prompt" in record.message
    assert len(history) == 6, "the caller's history is complete"
    pipe.generate(chat("third"), GREEDY)
    assert "left out" not in pipe.execution_report()


def test_a_last_turn_that_is_too_long_is_rejected_before_anything_runs(pipes, reads: Reads) -> None:
    pipe = pipes("TRUNCATE")
    with pytest.raises(
        PromptError, match=r"^MAX_PROMPT_LEN=40: the prompt has 60 tokens, and no ea"
    ):
        pipe.generate(chat("first", "one", "x" * 50))
    assert not reads


def test_a_full_cache_gives_up_turns_before_the_answer(pipes, reads: Reads) -> None:
    """The answer has 60 tokens; the cache stores 49."""
    history = chat("first", "one", "2nd")
    answer = "abcdefghijklmnopqrstuvwxyz0123456789" + "ABCDEFGHIJKLMNOPQRSTUVWX"
    pipe = pipes("TRUNCATE", answer)
    results = pipe.generate(history, max_new_tokens=60)
    assert results.texts == [answer]
    assert results.finish_reasons == [GenerationFinishReason.LENGTH]
    prompt, shorter = toy_ids(history), toy_ids(chat("2nd"))
    said = ids_of(answer)
    begins = begun(reads)
    first = CAPACITY + 1 - len(prompt)
    assert begins[0] == prompt
    assert begins[1] == [*shorter, *said[:first]], "the first turn is left out, the answer is whole"
    assert all(ids[: len(shorter)] == shorter for ids in begins[1:]), "and the prompt stays"
    assert all(past + len(ids) <= CAPACITY for past, ids in reads)
    last = begins[-1][len(shorter) :]
    gone = "".join(map(chr, said)).find("".join(map(chr, last)))
    assert pipe.execution_report()["left out"] == (
        f"the oldest 2 of 4 messages and the first {gone} tokens of the answer"
    )


def begun(reads: Reads) -> list[list[int]]:
    """Return all tokens up to the end of each inference that rewinds, or begins."""
    stored, found = list[int](), list[list[int]]()
    for past, ids in reads:
        begins = past < len(stored) or not past
        stored[past:] = ids
        found += [[*stored]] * begins
    return found


@pytest.mark.parametrize("batched", [False, True])
def test_a_rejected_prompt_leaves_nothing_out(folder, pipes, caplog, batched: bool) -> None:
    long = chat("the very first", "one", "second", "two", "third")
    pipe = pipes("TRUNCATE")
    if batched:
        core, policy = answering_core("hey", CAPACITY), {"NPUW_LLM_ON_FULL": "TRUNCATE"}
        pipe = ContinuousBatchingPipeline(
            folder, SchedulerConfig(), "NPU", LENGTHS | policy, core=core
        )
    else:
        pipe.generate(long, GREEDY)
        assert "left out" in pipe.execution_report()
    caplog.clear()
    for refused in (chat("first", "one", "x" * 50), long):
        config = GenerationConfig(max_length=1) if refused is long else GREEDY
        with pytest.raises((PromptError, ConfigError)):
            pipe.generate([refused] if batched else refused, [config] if batched else config)
    assert batched or "left out" not in pipe.execution_report()
    assert not caplog.records


def test_several_texts_end_when_the_cache_is_full(pipes) -> None:
    """Rows of several texts differ, so they are not read again."""
    pipe = pipes("TRUNCATE", "abcdefghijklmnopqrstuvwxyz0123456789ABCDEF")
    config = {"num_return_sequences": 2, "do_sample": True, "temperature": 0.01}
    results = pipe.generate(
        chat("first", "one", "2nd"), max_new_tokens=99, ignore_eos=True, **config
    )
    assert {*results.finish_reasons} == {GenerationFinishReason.CAPACITY}


def test_a_sliding_cache_continues_after_the_tokens_that_it_has_read(pipes, reads: Reads) -> None:
    pipe = pipes("SLIDE")
    history, stored = chat(system="x" * 35), 0
    for turn in range(3):
        history.append({"role": "user", "content": f"{turn}?"})
        prompt = toy_ids(history)
        reads.clear()
        assert str(pipe.generate(history, GREEDY)) == "hey"
        assert reads[0][0] == stored
        assert [token for _, ids in reads for token in ids][: len(prompt) - stored] == prompt[
            stored:
        ]
        stored = len(prompt) + len("hey")
        history.append({"role": "assistant", "content": "hey"})


@pytest.mark.parametrize(
    ("length", "shared"), [(35, 1 + 34), (CAPACITY, 0)], ids=["none forgotten", "some forgotten"]
)
def test_a_sliding_cache_rewinds_while_it_has_forgotten_no_token(
    pipes, reads: Reads, length: int, shared: int
) -> None:
    pipe = pipes("SLIDE")
    pipe.generate(chat("1?", system="x" * length), GREEDY)
    reads.clear()
    other = chat("1?", "hey", "2?", system="x" * 34 + "y")
    pipe.generate(other, GREEDY)
    assert reads[0] == (shared, toy_ids(other)[shared:])


@pytest.mark.parametrize("kind", [MemoryCore, BatchingCore])
@pytest.mark.parametrize("policy", ["SLIDE", "TRUNCATE"])
def test_batched_chats_are_as_alone(folder, pipes, policy: str, kind: type[MemoryCore]) -> None:
    answer = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKL"
    config = GenerationConfig(max_new_tokens=45, do_sample=False)
    chats = [chat("first", "one", "second", "two", "third"), chat("1?")]
    alone = [str(pipes(policy, answer).generate(one, config)) for one in chats]
    core = kind(answering_core(answer)._table, CAPACITY)
    target = SchedulerConfig(max_num_seqs=2), "NPU", LENGTHS | {"NPUW_LLM_ON_FULL": policy}
    batched = ContinuousBatchingPipeline(folder, *target, core=core)
    results = batched.generate(chats, [config, config])
    assert [one.m_generation_ids[0] for one in results] == alone
    assert alone[0] == answer[:45]


def test_a_served_chat_leaves_out_turns(folder, reads: Reads) -> None:
    """A request for a chat has the whole history; its usage counts the tokens that are read."""
    properties = LENGTHS | {"NPUW_LLM_ON_FULL": "TRUNCATE"}
    core = BatchingCore(answering_core("hey")._table, CAPACITY)
    (folder / "model.safetensors").write_bytes(b"")
    opened = open_model(ModelSpec("toy", "text", folder, "NPU", properties, 2), core)
    history = chat("the very first", "one", "second", "two", "third")

    async def ask() -> int:
        model = opened(Commons(Limits(), Metrics(), Activity()))
        assert isinstance(model, ServedTextModel)
        turn = await prepare_turn(model, history.get_messages(), Offer((), False, False), None)
        running = await model.submit(turn.prompt, GREEDY, "a")
        assert "".join([chunk.text async for chunk in running]) == "hey"
        return running.prompt_tokens

    expected = toy_ids(chat("second", "two", "third"))
    assert asyncio.run(ask()) == len(expected)
    assert reads[0] == (0, expected)


def test_a_prompt_of_any_accepted_length_stays_whole(pipes, reads: Reads) -> None:
    for length in (1, 2, 20, 39, 40):
        reads.clear()
        ids = np.arange(20, 20 + length)[None]
        results = pipes("TRUNCATE").generate(ids, max_new_tokens=70, ignore_eos=True)
        assert len(results.tokens[0]) == 70
        assert all(past + len(new) <= CAPACITY for past, new in reads)
        begun = [new for past, new in reads if not past]
        assert all(new[:length] == ids[0].tolist()[: len(new)] for new in begun)
