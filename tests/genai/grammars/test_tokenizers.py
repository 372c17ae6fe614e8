"""Grammars with tokenizers of all decoders: followed exactly, or rejected by name at the load."""

from __future__ import annotations

import json
import logging
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer as HfTokenizer
from tokenizers import decoders, models

from genai_layer import (
    GenerationConfig,
    LLMPipeline,
    ModelError,
    PerfMetrics,
    StructuredOutputConfig,
    Tokenizer,
)
from genai_layer.grammars.compiler import GrammarCompiler
from genai_layer.testing.memory_runtime import MemoryCore
from genai_layer.testing.toy import EOS, write_toy_folder

GOLDENS = Path(__file__).parents[2] / "goldens"
SCHEMA = json.dumps({"enum": [{"name": "Größe", "n": [-1.5, None]}, "日本"]})


@pytest.fixture(scope="module")
def gguf() -> Any:
    """Return the golden of a GGUF's tokenizer."""
    return json.loads(lzma.decompress((GOLDENS / "gguf_tokenizer.json.xz").read_bytes()))


@pytest.fixture
def folder_of_gguf(gguf: Any, tmp_path: Path) -> Path:
    """Write the folder that transformers makes of a GGUF, without a model."""
    (tmp_path / "tokenizer.json").write_text(json.dumps(gguf["tokenizer"]))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(gguf["config"]))
    (tmp_path / "config.json").write_text("{}")
    return tmp_path


def test_tokens_of_a_converted_gguf_have_the_bytes_of_transformers_text(
    gguf: Any, folder_of_gguf: Path
) -> None:
    tokenizer = Tokenizer(folder_of_gguf)
    for each in gguf["texts"]:
        data = b"".join(tokenizer.bytes_of(token) for token in each["ids"])
        assert data.decode() == each["decoded"] == each["text"]


def test_a_converted_gguf_follows_a_schema(folder_of_gguf: Path) -> None:
    table = np.random.default_rng(3).standard_normal((700, 700), np.float32)
    pipe = LLMPipeline(folder_of_gguf, "CPU", core=MemoryCore(table))
    config = StructuredOutputConfig(json_schema=SCHEMA)
    text = pipe.generate("?", eos_token_id=2, max_new_tokens=99, structured_output_config=config)
    assert json.loads(text) in json.loads(SCHEMA)["enum"]


REJECTED = [
    (None, "decoder puts spaces between tokens"),
    (decoders.WordPiece(), "decoder puts spaces between tokens"),
    (decoders.CTC(), "has no letter with the same text wherever it stands"),
]


@pytest.mark.parametrize(("decoder", "reason"), REJECTED)
def test_a_tokenizer_without_exact_texts_is_named_when_it_is_loaded(
    decoder: Any, reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = HfTokenizer(models.WordLevel({name: i for i, name in enumerate(["?", "b", "c"])}, "?"))
    made.decoder = decoder
    made.save(str(write_toy_folder(tmp_path) / "tokenizer.json"))
    with caplog.at_level(logging.WARNING):
        compiler = GrammarCompiler(Tokenizer(tmp_path))
    assert "structured output is not available: the tokenizer" in caplog.text
    assert reason in caplog.text
    config = GenerationConfig(
        stop_token_ids={EOS}, structured_output_config=StructuredOutputConfig(regex="b")
    )
    with pytest.raises(ModelError, match=reason):
        compiler.constraint(config, PerfMetrics())
