"""Turns of chats on the complete stack: texts are those of reading every prompt whole."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from genai_layer import ChatHistory, GenerationConfig, LLMPipeline, StreamingStatus

LENGTHS = {"MAX_PROMPT_LEN": 256, "MIN_RESPONSE_LEN": 64, "INFERENCE_PRECISION_HINT": "f32"}
WORDS = ("NPU", "blob", "cache", "tile", "What is", "Who reads", "a", "the", "token?")
NINE = GenerationConfig(max_new_tokens=9)
BEAMS = GenerationConfig(max_new_tokens=5, num_beams=2)


@pytest.fixture(scope="module")
def pipe(demo: Path) -> LLMPipeline:
    return LLMPipeline(demo, "NPU", **LENGTHS)


def spoken(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=chance.randint(1, 9)))


def change(messages: list[dict[str, Any]], chance: random.Random) -> None:
    """Add a question; or edit a message, or remove the last ones."""
    act = chance.choice(["ask", "ask", "ask", "edit", "regenerate"])
    if act == "edit":
        chance.choice(messages)["content"] = spoken(chance)
    if act == "regenerate":
        del messages[max(1, len(messages) - 2) :]
    messages.append({"role": "user", "content": spoken(chance)})


@pytest.mark.matrix
@pytest.mark.parametrize("seed", range(4))
def test_a_chat_is_answered_as_if_each_turn_were_read_whole(pipe: LLMPipeline, seed: int) -> None:
    """Turns are also cancelled, and searched by beams, which leave other rows."""
    chance, messages = random.Random(seed), [{"role": "system", "content": "Be brief."}]
    for turn in range(8):
        change(messages, chance)
        history, config = ChatHistory(messages), BEAMS if turn == 4 else NINE
        if turn == 2:
            pipe.generate(history, config, lambda _: StreamingStatus.CANCEL)
        answer = str(pipe.generate(history, config))
        pipe._generator.forget_tokens()
        assert answer == str(pipe.generate(history, config)), messages
        messages.append({"role": "assistant", "content": answer})
        if pipe.get_tokenizer().encode(str(messages)).input_ids.shape[1] > 200:
            del messages[1:3]


def test_a_turn_reads_its_new_tokens_at_once(pipe: LLMPipeline) -> None:
    history = ChatHistory([{"role": "user", "content": "What is an NPU? " * 9}])
    first = pipe.generate(history, NINE)
    history.append({"role": "assistant", "content": first.texts[0]})
    history.append({"role": "user", "content": "And a blob?"})
    second = pipe.generate(history, NINE)
    whole = [one.perf_metrics.get_num_input_tokens() for one in (first, second)]
    assert whole[1] > whole[0]
    assert pipe.execution_report()["prefill"].count("+") == 0, "one model reads the new tokens"
    request: Any = pipe._generator._request
    (chunk,) = request._conversation.reader.prefill.counts.chunks
    assert chunk.tokens == whole[1] - whole[0] - 8, "the last of nine tokens was not stored"
