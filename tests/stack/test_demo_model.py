"""The demo model: its size, its corpus, and its answers to questions outside of training."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from genai_layer import ChatHistory, GenerationFinishReason, LLMPipeline, Tokenizer

ROOT = Path(__file__).resolve().parents[2]
MOSTLY = 0.84
"""Required share of right answers."""

RIGHT = 0.8
"""Word overlap (F1) with the reference from which an answer counts as right."""


@pytest.fixture(scope="module")
def corpus(load_module: Callable[[Path], Any]) -> Any:
    """The module tools/demo_corpus.py."""
    return load_module(ROOT / "tools/demo_corpus.py")


@pytest.fixture(scope="module")
def evaluation(demo: Path) -> Mapping[str, Any]:
    """Results of the training script on the held-back phrasings."""
    return json.loads((demo / "evaluation.json").read_text())


@pytest.fixture(scope="module")
def pipe(demo: Path) -> LLMPipeline:
    """Pipeline of the model on the simulated NPU."""
    options = {"MAX_PROMPT_LEN": 128, "INFERENCE_PRECISION_HINT": "f32"}
    return LLMPipeline(demo, "NPU", **options)


def test_the_model_is_small(demo: Path) -> None:
    assert sum(file.stat().st_size for file in demo.iterdir()) <= 8 << 20
    data = (demo / "model.safetensors").read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    tensors = [entry for name, entry in header.items() if name != "__metadata__"]
    assert {entry["dtype"] for entry in tensors} == {"F16"}
    parameters = sum(entry["data_offsets"][1] - entry["data_offsets"][0] for entry in tensors) // 2
    assert parameters <= 4_000_000


def test_the_tokenizer_has_a_template_and_an_end_of_turn(demo: Path) -> None:
    tokenizer = Tokenizer(demo)
    assert tokenizer.get_eos_token() == "<|im_end|>"
    prompt = tokenizer.apply_chat_template([{"role": "user", "content": "hi"}], True)
    assert prompt == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    text = "An NPU – “neural” ☃\n  x"
    assert tokenizer.decode(tokenizer.encode(text).input_ids.data[0].tolist()) == text


def test_the_corpus_has_several_hundred_pairs_in_several_phrasings(corpus: Any) -> None:
    pairs = corpus.read()
    assert len(pairs) >= 300
    assert all(len(pair.questions) >= 4 for pair in pairs)
    held = sum(len(pair.held_back()) for pair in pairs)
    assert held / sum(len(pair.questions) for pair in pairs) == pytest.approx(0.1, abs=0.01)
    assert not any(set(pair.held_back()) & set(pair.trained()) for pair in pairs)


def test_the_evaluation_covers_exactly_the_held_back_phrasings(corpus, evaluation) -> None:
    asked = [row["question"] for row in evaluation["phrasings"]]
    assert asked == [question for pair in corpus.read() for question in pair.held_back()]


def test_the_evaluation_counts_right_answers_correctly(corpus: Any, evaluation) -> None:
    answers = {q: pair.answer for pair in corpus.read() for q in pair.held_back()}
    right = 0
    for row in evaluation["phrasings"]:
        score = corpus.f1(row["answer"], answers[row["question"]])
        assert row["f1"] == pytest.approx(score, abs=1e-3)
        right += score >= RIGHT
    assert right == evaluation["right"]


def test_most_held_back_phrasings_are_answered_right(evaluation) -> None:
    assert evaluation["right"] / evaluation["held_back"] >= MOSTLY


def test_every_answer_ends_with_a_stop_token(evaluation) -> None:
    assert evaluation["stopped"] == evaluation["held_back"]


def test_answers_on_the_npu_equal_those_of_the_evaluation(pipe, evaluation) -> None:
    """A sample of phrasings; decoding is greedy, so every word must be equal."""
    for row in evaluation["phrasings"][::24]:
        results = pipe.generate([row["question"]], max_new_tokens=80)
        assert results.texts == [row["answer"]], row["question"]
        assert results.finish_reasons == [GenerationFinishReason.STOP]


def test_the_model_explains_what_an_npu_is(pipe) -> None:
    words: list[str] = []
    answer = pipe.generate("What is an NPU?", streamer=words.append)
    assert answer.startswith("An NPU, or neural processing unit, is a chip")
    assert "".join(words) == answer
    assert len(words) > 10, "the text is streamed"


CONVERSATION = (
    "hello",
    "What is a KV cache?",
    "What is prefill?",
    "What does a barrier do?",
    "What is top-p?",
    "What is lambda lifting?",
    "Tell me a joke",
    "thanks",
)


def test_a_conversation_answers_its_last_question(demo: Path) -> None:
    """Most questions get the same answer as without the earlier turns."""
    options = {"MAX_PROMPT_LEN": 512, "INFERENCE_PRECISION_HINT": "f32"}
    pipe = LLMPipeline(demo, "NPU", **options)
    history = ChatHistory()
    lost: list[str] = []
    for question in CONVERSATION:
        alone = pipe.generate([question], max_new_tokens=80).texts[0]
        history.append({"role": "user", "content": question})
        told = pipe.generate(history, max_new_tokens=80).texts[0]
        history.append({"role": "assistant", "content": told})
        if told != alone:
            lost.append(question)
    assert 1 - len(lost) / len(CONVERSATION) >= MOSTLY, lost
