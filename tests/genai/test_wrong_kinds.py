"""Values of a wrong kind: each public argument and field accepts a value, or rejects it by name.

tests/oracle/test_live_kinds.py compares what is accepted with the real openvino_genai.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Mapping
from functools import cache, partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.genai.argument_walk import KINDS, complaint, places, public_names

import genai_layer
from genai_layer import (
    Adapter,
    AdapterConfig,
    AggregationMode,
    ContinuousBatchingPipeline,
    GenerationConfig,
    LLMPipeline,
    SchedulerConfig,
    StructuredOutputConfig,
    Tensor,
    TextParserStreamer,
    TextStreamer,
    Tokenizer,
    VLLMParserWrapper,
)
from genai_layer.kinds import describe
from genai_layer.testing.memory_batching import BatchingCore
from genai_layer.testing.toy import answering_core, make_tokenizer, write_toy_folder

MESSAGE = {"role": "user", "content": "a"}
SIZE = make_tokenizer().get_vocab_size()

NEED_MODELS = {
    "ASRPipeline",
    "EmbeddingPipeline",
    "TextEmbeddingPipeline",
    "TextRerankPipeline",
    "VLMPipeline",
    "WhisperPipeline",
}
"""Pipelines that tests/stack/test_wrong_kinds.py walks."""

RESULTS = {
    "ASRDecodedResultChunk",
    "ASRDecodedResults",
    "ASRPerfMetrics",
    "ASRRawPerfMetrics",
    "DecodedResults",
    "EmbedResult",
    "EncodedResults",
    "GenerationResult",
    "PerfMetrics",
    "RawPerfMetrics",
    "VLMDecodedResults",
    "WhisperDecodedResultChunk",
    "WhisperDecodedResults",
    "WhisperPerfMetrics",
    "WhisperRawPerfMetrics",
    "WhisperWordTiming",
}
"""Classes that pipelines alone create; openvino_genai's have no constructor."""


class Extracts:
    def extract_reasoning(self, text: str, request: None) -> tuple[str, str]:
        return text, text


@cache
def folder() -> Path:
    return write_toy_folder(Path(tempfile.mkdtemp()))


@cache
def tokenizer() -> Tokenizer:
    return Tokenizer(folder())


@cache
def pipeline() -> LLMPipeline:
    return LLMPipeline(folder(), "CPU", core=answering_core("hey"))


def batched() -> ContinuousBatchingPipeline:
    core = BatchingCore(np.zeros((SIZE, SIZE), np.float32), 64)
    return ContinuousBatchingPipeline(folder(), SchedulerConfig(), "CPU", core=core)


ADAPTER = Adapter()
WEIGHTS = Tensor(np.zeros(1, np.uint8))
REGEX = StructuredOutputConfig.Regex("a")
SHORT = GenerationConfig(max_new_tokens=1)
MODEL = {"models_path": folder(), "device": "CPU", "core": answering_core("hey")}
READER = {"tokenizer": tokenizer(), "callback": len, "detokenization_params": {}}
PROMPT = {"generation_config": SHORT, "images": [], "videos": []}
EXAMPLES: dict[str, dict[str, Any]] = {
    "AdapterConfig": {"adapter": ADAPTER, "alpha": 1.0, "adapters": [ADAPTER]},
    "AdapterConfig.add": {"adapter": Adapter()},
    "AdapterConfig.get_alpha": {"adapter": ADAPTER},
    "AdapterConfig.remove": {"adapter": ADAPTER},
    "AdapterConfig.set_alpha": {"adapter": ADAPTER, "alpha": 1.0},
    "CacheEvictionConfig": {
        "start_size": 1,
        "recent_size": 1,
        "max_cache_size": 9,
        "aggregation_mode": AggregationMode.SUM,
    },
    "ContinuousBatchingPipeline": MODEL
    | {"scheduler_config": SchedulerConfig(), "tokenizer": tokenizer()},
    "ContinuousBatchingPipeline.add_request": PROMPT | {"request_id": 1, "prompt": "a"},
    "ContinuousBatchingPipeline.add_prompt": {"number": 1, "prompt": "a", "config": SHORT},
    "ContinuousBatchingPipeline.generate": PROMPT
    | {"prompts": ["a"], "generation_config": [SHORT]},
    "IncrementalParser.parse": {"delta_message": {}, "delta_text": "a"},
    "LLMPipeline": MODEL | {"model": "", "weights": WEIGHTS, "tokenizer": tokenizer()},
    "LLMPipeline.generate": {"inputs": "a", "generation_config": SHORT},
    "ReasoningIncrementalParser.parse": {"delta_message": {}, "delta_text": "a"},
    "StructuredOutputConfig.Tag": {"begin": "<", "content": REGEX, "end": ">"},
    "StructuredOutputConfig.TagsWithSeparator": {"tags": [], "separator": ","},
    "StructuredOutputConfig.TriggeredTags": {"triggers": [], "tags": []},
    "TextParserStreamer": READER,
    "TextParserStreamer.write_text": {"text": "a"},
    "TextStreamer": READER,
    "TextStreamer.write_text": {"text": "a"},
    "TokenizedInputs": {"input_ids": [[1]], "attention_mask": [[1]]},
    "Tokenizer": {
        "tokenizer_path": folder(),
        "tokenizer_model": "",
        "tokenizer_weights": WEIGHTS,
        "detokenizer_model": "",
        "detokenizer_weights": WEIGHTS,
    },
    "Tokenizer.apply_chat_template": {"history": [MESSAGE], "add_generation_prompt": True},
    "Tokenizer.decode": {"tokens": [1]},
    "Tokenizer.encode": {"prompts": ["a"], "prompt": "a", "prompts_1": ["a"], "prompts_2": ["a"]},
    "draft_model": {"models_path": folder()},
}
for _name in ("DeepSeekR1", "Phi4"):
    EXAMPLES[f"{_name}ReasoningIncrementalParser.parse"] = {"delta_message": {}, "delta_text": "a"}


def _made(name: str) -> Any:
    """Return a format of structured output."""
    kind = getattr(StructuredOutputConfig, name)
    named = EXAMPLES.get(f"StructuredOutputConfig.{name}")
    if named is not None:
        return kind(**named)
    return kind(REGEX, REGEX) if name in ("Concat", "Union") else kind("a")


MADE: dict[str, Callable[[], Any]] = {
    "AdapterConfig": lambda: AdapterConfig(ADAPTER),
    "CacheEvictionConfig": lambda: SchedulerConfig().cache_eviction_config,
    "ContinuousBatchingPipeline": batched,
    "LLMPipeline": pipeline,
    **{
        f"StructuredOutputConfig.{name}": partial(_made, name)
        for name in (
            "Concat",
            "EBNF",
            "JSONSchema",
            "QwenXMLParametersFormat",
            "ConstString",
            "Regex",
            "Tag",
            "TagsWithSeparator",
            "TriggeredTags",
            "Union",
        )
    },
    "TextParserStreamer": lambda: TextParserStreamer(tokenizer()),
    "TextStreamer": lambda: TextStreamer(tokenizer(), len),
    "Tokenizer": lambda: Tokenizer(folder()),
    "TokenizedInputs": lambda: tokenizer().encode("a"),
    "VLLMParserWrapper": lambda: VLLMParserWrapper(Extracts()),
}
"""Objects of the classes whose constructors have required arguments."""


@pytest.mark.parametrize("name", sorted(public_names() - NEED_MODELS - RESULTS))
def test_a_value_is_accepted_as_annotated_or_rejected_by_name(name: str) -> None:
    make = MADE.get(name) or attrgetter(name)(genai_layer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        found = [complaint(place, kind) for place in places(name, EXAMPLES, make) for kind in KINDS]
    assert not "\n".join(filter(None, found))


@pytest.mark.parametrize(
    ("hint", "described"),
    [
        (dict[str, int], "a dict of str to int"),
        (list[dict[str, Any]], "a list of dict of str to any value"),
        (Mapping[str, Mapping[str, object]], "a dict of str to dict of str to any value"),
    ],
)
def test_the_keys_of_a_dictionary_are_described(hint: Any, described: str) -> None:
    assert describe(hint) == described
