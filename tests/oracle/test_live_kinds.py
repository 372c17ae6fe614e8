"""Kinds of values that arguments accept, compared to the real openvino_genai, live.

Where the real one raises TypeError, so does this one, and each kind that it accepts is accepted;
the tables below are the differences.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.genai.argument_walk import KINDS

import genai_layer as ours

theirs = pytest.importorskip("openvino_genai")

pytestmark = pytest.mark.oracle

MESSAGE = {"role": "user", "content": "a"}
MESSAGES: dict[str, Callable[[], Any]] = {
    "list of dict": lambda: [MESSAGE],
    "tuple of dict": lambda: (MESSAGE,),
    "generator of dict": lambda: (each for each in [MESSAGE]),
    "generator of int": lambda: (each for each in [1, 2]),
    "empty dict": dict,
    "range": lambda: range(2),
    "array of str": lambda: np.array(["a", "b"]),
    "keys": lambda: {"a": 1}.keys(),
    "np.int64": lambda: np.int64(3),
}
VALUES = {name: make for name, (make, _) in KINDS.items()} | MESSAGES

Act = Callable[[Any, Any], Any]
"""Uses a package and a value."""


def history(method: str) -> Act:
    return lambda package, value: getattr(package.ChatHistory(), method)(value)


def field(path: str, name: str) -> Act:
    def act(package: Any, value: Any) -> None:
        owner = package
        for part in path.split("."):
            owner = getattr(owner, part)
        setattr(owner(), name, value)

    return act


FIELDS = {
    "GenerationConfig": ours.GenerationConfig,
    "WhisperGenerationConfig": ours.WhisperGenerationConfig,
    "TextEmbeddingPipeline.Config": ours.TextEmbeddingPipeline.Config,
    "TextRerankPipeline.Config": ours.TextRerankPipeline.Config,
}
OWN = {"logit_bias"}
"""Fields of this package alone."""
DATACLASSES = ("SchedulerConfig", "KVCrushConfig", "SparseAttentionConfig", "VideoMetadata")


def acts() -> Iterator[tuple[str, Act]]:
    for method in ("append", "set_tools", "set_extra_context", "set_messages"):
        yield f"ChatHistory.{method}", history(method)
    yield "ChatHistory", lambda package, value: package.ChatHistory(value)
    yield "ReasoningParser.open_tag", lambda package, v: package.ReasoningParser(True, True, v)
    yield "ReasoningParser.keep", lambda package, v: package.ReasoningParser(True, v)
    yield "AdapterConfig", lambda package, value: package.AdapterConfig(value)
    yield "Adapter", lambda package, value: package.Adapter(value)
    yield "draft_model", lambda package, value: package.draft_model(value)
    for path, config in FIELDS.items():
        for name in sorted(config.model_fields.keys() - OWN):
            yield f"{path}.{name}", field(path, name)
    for path in DATACLASSES:
        for name in getattr(ours, path).__dataclass_fields__:
            yield f"{path}.{name}", field(path, name)


JSON = "+tuple +set +generator +array +array of NaN +tuple of dict +generator of dict "
JSON += "+generator of int +range +array of str +keys"
"""Lists of JSON values: any sequence here, a list there."""
MESSAGES_ONLY = "-list of str -list of int -list of NaN +tuple of dict +generator of dict"
"""Messages are dictionaries here, anything there."""
BOOLEAN = "-None -range"
"""Only numbers and booleans are truth values here; there, anything with __bool__ and None."""
NUMBER = "-NaN -infinity"
"""Numbers are finite here."""
IDS = "+list of int +array +generator of int +range"
TEXTS = "+str +list of str +tuple +generator +array of str"
DIFFERENCES = {
    "ChatHistory": MESSAGES_ONLY,
    "ChatHistory.set_messages": MESSAGES_ONLY,
    "ChatHistory.set_tools": JSON,
    "Adapter": "+None +array +array of NaN +array of str",
    "AdapterConfig": "-generator -generator of dict -generator of int",
    "stop_strings": TEXTS,
    "stop_token_ids": IDS,
    "padding_side": "-str -bytes",
    "pad_to_max_length": "-range",
    "Tokenizer.encode": "-list of int -list of dict -list of NaN",
    "Tokenizer.add_generation_prompt": BOOLEAN,
    "LLMPipeline.generate": "+array +array of NaN",
}
"""Kinds that are accepted here alone (+), or there alone (-), by argument or field."""


def expected(name: str) -> set[str]:
    """Return the differences of a place."""
    return parts(DIFFERENCES.get(name) or DIFFERENCES.get(name.rpartition(".")[2], ""))


def parts(text: str) -> set[str]:
    return set(re.findall(r"[+-][^+-]*[^ +-]", text))


def rejects(act: Act, package: Any, value: Any) -> bool:
    """Return whether a value is of a wrong kind; other errors are those of its content."""
    try:
        act(package, value)
    except TypeError:
        return True
    except RuntimeError:
        return False
    return False


def differences(act: Act) -> set[str]:
    found: set[str] = set()
    for kind, make in VALUES.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            here, there = (rejects(act, package, make()) for package in (ours, theirs))
        if here != there:
            found.add(f"{'-' if here else '+'}{kind}")
    return found


@pytest.mark.parametrize(("name", "act"), [*acts()])
def test_kinds_of_values_are_the_real_ones(name: str, act: Act) -> None:
    found = differences(act)
    # Fields of truth values, or of numbers, have the differences of these.
    assert found in (expected(name), parts(BOOLEAN), parts(NUMBER))


@pytest.fixture(scope="module")
def tools(genai_folder: Path) -> dict[Any, Any]:
    """Tokenizer and pipeline of each package."""
    return {
        package: (package.Tokenizer(genai_folder), package.LLMPipeline(genai_folder, "CPU"))
        for package in (ours, theirs)
    }


def rendered(tokenizer: Any, **named: Any) -> Any:
    return tokenizer.apply_chat_template(
        **{"history": [MESSAGE], "add_generation_prompt": True, **named}
    )


CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "Tokenizer.encode": lambda tokenizer, _, value: tokenizer.encode(value),
    "Tokenizer.history": lambda tokenizer, _, value: rendered(tokenizer, history=value),
    "Tokenizer.tools": lambda tokenizer, _, value: rendered(tokenizer, tools=value),
    "Tokenizer.extra": lambda tokenizer, _, value: rendered(tokenizer, extra_context=value),
    "Tokenizer.add_generation_prompt": lambda tokenizer, _, value: rendered(
        tokenizer, add_generation_prompt=value
    ),
    "LLMPipeline.generate": lambda _, pipe, value: pipe.generate(value, max_new_tokens=1),
    "LLMPipeline.config": lambda _, pipe, value: pipe.generate("a", value, max_new_tokens=1),
    "LLMPipeline.streamer": lambda _, pipe, value: pipe.generate(
        "a", max_new_tokens=1, streamer=value
    ),
    "LLMPipeline.set": lambda _, pipe, value: pipe.set_generation_config(value),
}


@pytest.mark.parametrize("name", CALLS)
def test_kinds_of_calls_are_the_real_ones(tools: dict[Any, Any], name: str) -> None:
    def act(package: Any, value: Any) -> None:
        CALLS[name](*tools[package], value)

    assert differences(act) == expected(name)
