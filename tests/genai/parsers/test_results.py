"""Parsers in a pipeline."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from genai_layer import (
    ChatHistory,
    ConfigError,
    GenerationConfig,
    GenerationFinishReason,
    IncrementalParser,
    Parser,
    Phi4ReasoningIncrementalParser,
    ReasoningIncrementalParser,
    ReasoningParser,
    StreamingStatus,
    TextParserStreamer,
)
from genai_layer.testing.toy import ids_of, word_id

TEXT = "[abc]def"


class Thoughts(ReasoningParser):
    def __init__(self) -> None:
        super().__init__(open_tag="[", close_tag="]")
        self.lock = threading.Lock()  # cannot be copied


class Length(Parser):
    def parse(self, message):
        message["length"] = len(message["content"])


class Streamer(TextParserStreamer):
    def __init__(self, pipe, *parsers: IncrementalParser) -> None:
        super().__init__(pipe.get_tokenizer(), parsers=parsers)
        self.content = ""

    def write(self, message):
        self.content += message["content"]
        return StreamingStatus.RUNNING


class Stop(IncrementalParser):
    """Parser that ends the generation after some texts."""

    def __init__(self, after: int) -> None:
        self.after = after
        self.reset()

    def reset(self) -> None:
        self.seen = 0
        self.set_status(StreamingStatus.RUNNING)

    def parse(self, delta_message, delta_text, delta_tokens=None):
        self.seen += 1
        if self.seen == self.after:
            self.set_status(StreamingStatus.TOOL_CALL_STOP)
        return delta_text


@pytest.mark.parametrize("inputs", [["?"], ChatHistory([{"role": "user", "content": "?"}])])
def test_parsers_are_applied_in_order(speaks, inputs) -> None:
    results = speaks(TEXT).generate(inputs, parsers=[Thoughts(), Length()])
    assert results.texts == [TEXT]
    assert results.parsed == [{"content": TEXT, "reasoning_content": "abc", "length": 8}]


def test_parsers_of_a_configuration_and_of_the_pipeline_are_applied(speaks) -> None:
    pipe = speaks(TEXT)
    config = GenerationConfig()
    config.parsers = [Length()]
    assert pipe.generate(["?"], config).parsed[0]["length"] == 8
    default = pipe.get_generation_config()
    default.parsers = [Thoughts()]
    pipe.set_generation_config(default)
    assert pipe.generate(["?"]).parsed[0]["reasoning_content"] == "abc"
    assert pipe.get_generation_config().parsers == default.parsers


def test_each_text_has_a_message(speaks) -> None:
    sampled = {"num_return_sequences": 2, "do_sample": True, "parsers": [Length()]}
    results = speaks(TEXT).generate(["?", "!"], **sampled)
    assert results.parsed == [{"content": text, "length": len(text)} for text in results.texts]
    assert len(results.parsed) == 4


def test_a_text_is_returned_as_text_and_ids_are_not_parsed(speaks) -> None:
    pipe = speaks(TEXT)
    assert pipe.generate("?", parsers=[Length()]) == TEXT
    assert pipe.generate([[4]], parsers=[Length()]).tokens == [[*ids_of(TEXT), 2]]


def test_without_parsers_nothing_is_parsed(speaks) -> None:
    assert speaks(TEXT).generate(["?"]).parsed == []


@pytest.mark.parametrize("parsers", [[3], [Phi4ReasoningIncrementalParser()], 3])
def test_other_objects_are_no_parsers(parsers) -> None:
    with pytest.raises(ConfigError, match="parsers"):
        GenerationConfig(parsers=parsers)


def test_an_exception_of_a_parser_is_raised_and_the_pipeline_stays_usable(speaks) -> None:
    class Fails(Parser):
        def parse(self, message):
            raise ValueError("mine")

    pipe = speaks(TEXT)
    with pytest.raises(ValueError, match="mine"):
        pipe.generate(["?"], parsers=[Fails()])
    assert pipe.generate("?") == TEXT


def test_a_streamers_message_is_the_result_and_other_parsers_extend_it(speaks) -> None:
    pipe = speaks(TEXT)
    streamer = Streamer(pipe, ReasoningIncrementalParser(open_tag="[", close_tag="]"))
    expected: dict[str, Any] = {"content": TEXT, "reasoning_content": "abc"}
    for _ in range(2):
        assert pipe.generate(["?"], streamer=streamer).parsed == [expected]
    both = pipe.generate(["?"], streamer=streamer, parsers=[Length()])
    assert both.parsed == [expected | {"length": 8}]
    assert streamer.content == TEXT * 3
    assert pipe.generate("?", streamer=streamer) == TEXT
    assert streamer.get_parsed_message() == expected


def test_a_parsers_status_is_the_finish_reason(speaks) -> None:
    pipe = speaks(TEXT)
    streamer = Streamer(pipe, Stop(3))
    for _ in range(2):
        results = pipe.generate(["?"], streamer=streamer)
        assert results.finish_reasons == [GenerationFinishReason.TOOL_CALL]
        assert results.texts == ["[abc"], "the third text is parsed when the fourth arrives"
        assert results.parsed == [{"content": "[abc"}]


def test_content_ends_before_an_excluded_stop_string(speaks) -> None:
    pipe = speaks([*ids_of("a"), word_id("mach"), word_id("ines"), *ids_of("!")])
    streamer = Streamer(pipe, Stop(9))
    results = pipe.generate(["?"], streamer=streamer, stop_strings={"chin"})
    assert results.texts == ["ama"]
    assert results.parsed == [{"content": "ama"}]


def test_a_parser_without_reset_is_an_error(speaks) -> None:
    class Forgetful(IncrementalParser):
        def parse(self, delta_message, delta_text, delta_tokens=None):
            return delta_text

    pipe = speaks(TEXT)
    with pytest.raises(NotImplementedError, match=r"Forgetful has no method reset\(\)"):
        pipe.generate("?", streamer=Streamer(pipe, Forgetful()))
