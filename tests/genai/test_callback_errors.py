"""Errors of a caller's functions: each arrives as it was raised, StopIteration included.

Methods of decoding are generators, in which Python replaces StopIteration by a RuntimeError.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from genai_layer import (
    ContinuousBatchingPipeline,
    GenerationConfig,
    IncrementalParser,
    LLMPipeline,
    Parser,
    SchedulerConfig,
    StreamerBase,
    StreamingStatus,
    TextParserStreamer,
    TextStreamer,
    Tokenizer,
    VLLMParserWrapper,
)
from genai_layer.testing.memory_batching import BatchingCore
from genai_layer.testing.memory_runtime import chain
from genai_layer.testing.toy import ASSISTANT, EOS, answering_core, ids_of, make_tokenizer

ERROR = StopIteration("mine")


def fail(*_: Any, **__: Any) -> Any:
    raise ERROR


class Writes(StreamerBase):
    write = fail


class Ends(StreamerBase):
    def write(self, token: Any) -> StreamingStatus:
        return StreamingStatus.RUNNING

    end = fail


class Parses(IncrementalParser):
    parse = fail

    def reset(self) -> None:
        pass


class Resets(Parses):
    reset = fail


class Reads(Parser):
    parse = fail


class Extracts:
    extract_tool_calls = fail


class Decodes:
    decode = fail


Call = dict[str, Any]
CALLBACKS: dict[str, Callable[[Tokenizer], Call]] = {
    "callable": lambda _: {"streamer": fail},
    "write": lambda _: {"streamer": Writes()},
    "end": lambda _: {"streamer": Ends()},
    "callback": lambda tokenizer: {"streamer": TextStreamer(tokenizer, fail)},
    "decoder": lambda _: {
        "streamer": TextStreamer(Decodes(), fail, {"skip_special_tokens": False})
    },
    "parse": lambda tokenizer: {"streamer": TextParserStreamer(tokenizer, [Parses()])},
    "reset": lambda tokenizer: {"streamer": TextParserStreamer(tokenizer, [Resets()])},
    "parser": lambda _: {"parsers": [Reads()]},
    "vllm": lambda _: {"parsers": [VLLMParserWrapper(Extracts())]},
}


PARSERS = ("parser", "vllm")
"""Callbacks that continuous batching has none of."""


@pytest.mark.parametrize("candidates", [{}, {"num_assistant_tokens": 2, "max_ngram_size": 1}])
@pytest.mark.parametrize("callback", CALLBACKS)
def test_stop_iteration_of_a_callback_arrives_as_itself(
    folder: Path, callback: str, candidates: Call
) -> None:
    lookup = {"prompt_lookup": True} if candidates else {}
    pipe = LLMPipeline(folder, "CPU", core=answering_core("hey"), **lookup)
    with pytest.raises(StopIteration) as caught:
        pipe.generate("?", **CALLBACKS[callback](pipe.get_tokenizer()), **candidates)
    assert caught.value is ERROR
    assert pipe.generate("?", **candidates) == "hey"


@pytest.mark.parametrize("callback", [name for name in CALLBACKS if name not in PARSERS])
def test_stop_iteration_arrives_from_a_batch(folder: Path, callback: str) -> None:
    core = BatchingCore(chain([ASSISTANT, *ids_of("hey"), EOS], make_tokenizer().get_vocab_size()))
    pipe = ContinuousBatchingPipeline(folder, SchedulerConfig(), "CPU", core=core)
    given = CALLBACKS[callback](pipe.get_tokenizer())
    with pytest.raises(StopIteration) as caught:
        pipe.generate("?", GenerationConfig(max_new_tokens=5), **given)
    assert caught.value is ERROR
