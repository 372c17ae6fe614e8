"""Turns of chats on the in-memory runtime: they read what follows the stored tokens, and no more.

The runtime's logits depend on every stored token, so a text changes if one is lost or repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genai_layer import (
    ChatHistory,
    ContinuousBatchingPipeline,
    GenerationConfig,
    LLMPipeline,
    RuntimeFailure,
    SchedulerConfig,
    StreamingStatus,
)
from genai_layer.decoding.language_model import Inputs
from genai_layer.decoding.stored_tokens import StoredTokens
from genai_layer.runtime import CONTINUES
from genai_layer.testing.memory_batching import BatchingCore
from genai_layer.testing.memory_runtime import MemoryCore, MemoryRequest
from genai_layer.testing.toy import ids_of, make_tokenizer, write_toy_folder

SIZE = make_tokenizer().get_vocab_size()
TABLE = (np.random.default_rng(5).normal(size=(SIZE, SIZE)) * 3).astype(np.float32)
TABLE[:, 6:][:, 128:] = -9
"""Logits by the last token; texts of letters, without an end."""
SHORT = GenerationConfig(max_new_tokens=4, do_sample=False)
BEAMS = GenerationConfig(max_new_tokens=4, num_beams=2)
SAMPLED = GenerationConfig(max_new_tokens=4, do_sample=True, num_return_sequences=2)
ECHO = GenerationConfig(max_new_tokens=4, do_sample=False, echo=True)

Reads = list[tuple[int, int]]
"""Number of tokens before, and of new tokens, of each inference."""


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """Return the inferences of the in-memory runtime, as they are run."""
    found: Reads = []
    infer = MemoryRequest.infer

    def watched(request: MemoryRequest, inputs: Any, /) -> object:
        count = inputs["input_ids"].shape[1]
        found.append((inputs["attention_mask"].shape[1] - count, count))
        return infer(request, inputs)

    monkeypatch.setattr(MemoryRequest, "infer", watched)
    return found


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toy_folder(tmp_path_factory.mktemp("turns"))


def pipeline(toy: Path, continues: bool = True, **properties: Any) -> LLMPipeline:
    core = MemoryCore(TABLE)
    core.blob = {CONTINUES: continues}
    return LLMPipeline(toy, "CPU", core=core, **properties)


def chat(*texts: str, **roles: str) -> ChatHistory:
    """Return a chat of questions and answers, in turn, after a system message."""
    parts = [("system", "be kind"), *zip(("user", "assistant") * len(texts), texts, strict=False)]
    return ChatHistory([{"role": role, "content": text} for role, text in [*parts, *roles.items()]])


def size_of(history: ChatHistory, opens: bool = False) -> int:
    """Return the tokens of a chat: one for each role and letter."""
    parts = [f"<|{one['role']}|>{one['content']}" for one in history.get_messages()]
    return len(ids_of("".join(parts))) + opens


def spoken(pipe: LLMPipeline, *texts: str) -> str:
    """Generate after a chat; return the answer."""
    return str(pipe.generate(chat(*texts), SHORT))


def test_a_turn_reads_the_last_token_and_what_follows(toy: Path, reads: Reads) -> None:
    pipe = pipeline(toy)
    answer = spoken(pipe, "one")
    reads.clear()
    spoken(pipe, "one", answer, "two")
    before = size_of(chat("one", answer)) - 1  # the last token of an answer is never read
    assert reads[0] == (before, size_of(chat("one", answer, "two"), opens=True) - before)
    assert reads[1:] == [(before + reads[0][1] + number, 1) for number in range(3)]


@pytest.mark.parametrize(
    ("texts", "roles", "same"),
    [
        (("one", "other", "two"), {}, ("one", "")),
        (("one",), {}, None),
        (("one", ""), {"tool": "42"}, ("one", "")),
        (("new",), {}, ("",)),
    ],
    ids=["an edited answer", "a regenerated answer", "a tool's result", "the system message"],
)
def test_a_chat_is_read_from_where_it_parts(
    toy: Path, reads: Reads, texts: tuple[str, ...], roles: dict[str, str], same: Any
) -> None:
    pipe = pipeline(toy)
    spoken(pipe, "one")
    reads.clear()
    history = chat(*texts, **roles)
    pipe.generate(history, SHORT)
    shared = size_of(history) if same is None else size_of(chat(*same))
    assert reads[0][0] == shared


def cancelling(after: int) -> Callable[[str], StreamingStatus]:
    """Return a streamer that cancels at a number of calls."""
    left = iter(range(after))
    return lambda _: StreamingStatus.CANCEL if next(left, None) is None else StreamingStatus.RUNNING


def test_a_cancelled_answer_leaves_the_tokens_that_were_read(toy: Path, reads: Reads) -> None:
    pipe, history = pipeline(toy), chat("one")
    config = GenerationConfig(max_new_tokens=9, do_sample=False)
    whole = str(pipe.generate(history, config))
    pipe.generate(chat("other"), SHORT)
    pipe.generate(history, config, cancelling(3))
    reads.clear()
    pipe.generate(chat("one", whole, "two"), SHORT)
    assert reads[0][0] == size_of(chat("one"), opens=True) + 3


def test_a_failed_inference_leaves_nothing(
    toy: Path, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = pipeline(toy)
    expected = spoken(pipe, "one")
    with monkeypatch.context() as patch:
        patch.setattr(MemoryRequest, "infer", failing)
        with pytest.raises(RuntimeFailure):
            spoken(pipe, "one")
    reads.clear()
    assert spoken(pipe, "one") == expected
    assert reads[0] == (0, size_of(chat("one"), opens=True))


def failing(*_: object) -> None:
    raise RuntimeError("the device failed")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_end_of_a_chat_forgets_its_tokens(toy: Path, reads: Reads) -> None:
    pipe = pipeline(toy)
    pipe.start_chat("be kind")
    pipe.generate("one", SHORT)
    pipe.finish_chat()
    reads.clear()
    spoken(pipe, "one")
    assert reads[0][0] == 0


def test_a_runtime_that_cannot_continue_reads_each_turn_whole(toy: Path, reads: Reads) -> None:
    pipe = pipeline(toy, continues=False)
    spoken(pipe, "one")
    reads.clear()
    spoken(pipe, "one", "two", "three")
    assert reads[0][0] == 0


LETTERS = st.text("abc", min_size=1, max_size=4)
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), LETTERS, st.sampled_from([SHORT, BEAMS, SAMPLED, ECHO])),
        st.tuples(st.just("tool"), LETTERS, st.just(SHORT)),
        st.tuples(st.just("edit"), st.integers(0, 9), LETTERS),
        st.tuples(st.just("regenerate"), st.just(0), st.sampled_from([SHORT, SAMPLED])),
        st.tuples(st.just("cancel"), st.integers(0, 3), st.none()),
        st.tuples(st.just("fail"), st.none(), st.none()),
        st.tuples(st.just("text"), LETTERS, st.just(SHORT)),
    ),
    min_size=2,
    max_size=9,
)


def answers(pipe: LLMPipeline, actions: list[Any]) -> Iterator[object]:
    """Apply actions to a chat; yield all that a caller sees of the answers."""
    messages = [{"role": "system", "content": "be kind"}]
    for act, value, more in actions:
        if act in ("ask", "tool"):
            messages.append({"role": "user" if act == "ask" else "tool", "content": value})
        if act == "edit":
            messages[value % len(messages)]["content"] = more
        if act == "regenerate" and messages[-1]["role"] == "assistant":
            messages.pop()
        if act == "fail":
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(MemoryRequest, "infer", failing)
                with pytest.raises(RuntimeFailure):
                    pipe.generate(ChatHistory(messages), SHORT)
        elif act == "text":
            yield pipe.generate(value, more)
        elif act == "cancel":
            yield pipe.generate(ChatHistory(messages), SHORT, cancelling(value)).texts
        elif act != "edit":
            results = pipe.generate(ChatHistory(messages), more)
            yield results.texts, results.scores
            messages.append({"role": "assistant", "content": results.texts[0]})


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "prompt lookup"])
def both(request: pytest.FixtureRequest, toy: Path) -> list[LLMPipeline]:
    """Return pipelines whose runtime continues, and reads each prompt whole."""
    return [pipeline(toy, one, prompt_lookup=request.param) for one in (True, False)]


@settings(max_examples=20, deadline=None)
@given(actions=ACTIONS)
def test_answers_are_those_of_reading_each_chat_whole(
    both: list[LLMPipeline], actions: list[Any]
) -> None:
    keeping, reading = both
    keeping._generator.forget_tokens()
    assert [*answers(keeping, actions)] == [*answers(reading, actions)]


def test_prompts_part_at_a_changed_image() -> None:
    stored = StoredTokens(MemoryRequest(TABLE, 99), MemoryCore(TABLE).compile_model("", "", {}))
    ids = [7, 9, 9, 8]
    first = Inputs(visuals={1: -11, 2: -12}).identities(ids)
    stored.note([*first, 5])
    assert stored.shared([*first, 6]) == 4
    assert stored.shared([*Inputs(visuals={1: -21, 2: -22}).identities(ids), 6]) == 1


# Continuous batching


def batched(toy: Path, kind: type[MemoryCore] = BatchingCore, places: int = 2) -> Any:
    scheduler = SchedulerConfig(max_num_seqs=places)
    return ContinuousBatchingPipeline(toy, scheduler, "CPU", core=kind(TABLE))


class Asking:
    """Requests to a pipeline, one after the other or side by side."""

    def __init__(self, pipe: Any) -> None:
        self.pipe, self._number = pipe, 0

    def add(self, text: str, tokens: int = 4) -> Any:
        self._number += 1
        config = GenerationConfig(max_new_tokens=tokens, do_sample=False)
        return self.pipe.add_request(self._number, text, config)

    def run(self, *texts: str) -> list[int]:
        """Return the tokens of each prompt that were stored before."""
        handles = [self.add(text) for text in texts]
        while self.pipe.has_non_finished_requests():
            self.pipe.step()
        return [handle.get_cached_tokens() for handle in handles]


@pytest.mark.parametrize("kind", [MemoryCore, BatchingCore], ids=["in turn", "batched"])
def test_a_request_goes_to_the_place_with_its_longest_prefix(
    toy: Path, reads: Reads, kind: type[MemoryCore]
) -> None:
    asking = Asking(batched(toy, kind))
    assert asking.run("apples") == [0]
    assert asking.run("bananas") == [0], "an unused place is left"
    assert asking.run("apples are", "bananas are") == [6, 7], "two chats do not disturb each other"
    assert asking.run("bananas as") == [9]
    assert asking.run("cherries") == [0], "the apples are forgotten: they were used least recently"
    assert asking.run("bananas as", "apples are") == [9, 0]
    assert any(past == 6 and count == 4 for past, count in reads)


def test_a_running_request_keeps_its_place(toy: Path) -> None:
    asking = Asking(batched(toy))
    running = asking.add("apples", tokens=30)
    for _ in range(3):
        asking.pipe.step()
    assert asking.run("apples are") == [0]
    alone = pipeline(toy).generate([ids_of("apples")], max_new_tokens=30).tokens[0]
    assert running.read_all()[0].generated_ids == alone


@pytest.mark.parametrize("kind", [MemoryCore, BatchingCore], ids=["in turn", "batched"])
def test_a_cancelled_request_leaves_its_tokens(toy: Path, kind: type[MemoryCore]) -> None:
    asking = Asking(batched(toy, kind, places=1))
    cancelled = asking.add("apples", tokens=30)
    for _ in range(3):
        asking.pipe.step()
    cancelled.cancel()
    assert asking.run("apples are") == [6]


@settings(max_examples=8, deadline=None)
@given(
    st.lists(st.lists(st.text("ab", min_size=2, max_size=6), min_size=1, max_size=3), max_size=5)
)
@pytest.mark.parametrize("kind", [MemoryCore, BatchingCore], ids=["in turn", "batched"])
def test_answers_of_places_are_those_of_new_pipelines(
    toy: Path, kind: type[MemoryCore], rounds: list[list[str]]
) -> None:
    pipe, alone = batched(toy, kind), pipeline(toy, continues=False)
    for texts in rounds:
        found = pipe.generate(texts, [SHORT] * len(texts))
        assert [one.m_generation_ids[0] for one in found] == [
            alone.generate(text, SHORT) for text in texts
        ]
