"""A toy model folder: a real tokenizer and chat template, and no model.

With ``memory_runtime`` it forms a complete pipeline: see ``toy_pipeline``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from genai_layer.pipeline import LLMPipeline
from genai_layer.testing.memory_runtime import MemoryCore, chain

SPECIAL = ("<pad>", "<bos>", "<eos>", "<|user|>", "<|assistant|>", "<|system|>")
EOS = SPECIAL.index("<eos>")
ASSISTANT = SPECIAL.index("<|assistant|>")
TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
LONGER = ("he", "ll", "lo", " w", "or", "ld", "mach", "ines", " machine", "ch")
"""Tokens of several letters, so that a text has several tokenisations."""


def make_tokenizer() -> Tokenizer:
    """Create a byte-level tokenizer; it encodes letter by letter, and decodes the longer tokens."""
    letters = [*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    words = [word.replace(" ", "Ġ") for word in LONGER]
    vocabulary = {token: index for index, token in enumerate([*letters, *words])}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(SPECIAL))  # pyright: ignore[reportUnknownMemberType] (its stubs)
    return tokenizer


def is_plain(text: str) -> bool:
    """Return whether a text contains no special token."""
    return not any(special in text for special in SPECIAL)


def ids_of(text: str) -> list[int]:
    """Return a token for each byte of a text."""
    return make_tokenizer().encode(text, add_special_tokens=False).ids


def word_id(word: str) -> int:
    """Return the id of one of the longer tokens."""
    return make_tokenizer().get_vocab()[word.replace(" ", "Ġ")]


def write_toy_folder(folder: Path, **settings: Any) -> Path:
    """Write the tokenizer and configurations.

    Args:
        folder: an existing folder.
        settings: entries of tokenizer_config.json, e.g. another ``chat_template``.
    """
    make_tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"eos_token_id": EOS}))
    tokens = {"eos_token": "<eos>", "bos_token": "<bos>", "pad_token": "<pad>"}
    config = {**tokens, "chat_template": TEMPLATE, **settings}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def answering_core(answer: str | Sequence[int], capacity: int = 1 << 16) -> MemoryCore:
    """Create a runtime that generates one answer after ``<|assistant|>``, then ends.

    Args:
        answer: a text, or token ids; no token may occur twice.
        capacity: maximum number of tokens in a conversation.
    """
    tokens = ids_of(answer) if isinstance(answer, str) else list(answer)
    if len(set(tokens)) != len(tokens):
        raise ValueError("the answer repeats a token; the toy depends on the last token")
    size = make_tokenizer().get_vocab_size()
    return MemoryCore(chain([ASSISTANT, *tokens, EOS], size), capacity)


def toy_pipeline(
    folder: Path, answer: str | Sequence[int], device: str = "CPU", **properties: Any
) -> LLMPipeline:
    """Create a pipeline with the same answer to every prompt.

    Args:
        folder: an existing folder, to be written to.
        answer: see ``answering_core``.
        device: "NPU" adds its limits.
        properties: of the pipeline.
    """
    write_toy_folder(folder)
    return LLMPipeline(folder, device, core=answering_core(answer), **properties)
