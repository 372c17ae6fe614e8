"""Prompts of a benchmark.

Source: openvino.genai's llm_bench, docs/reference/genai.md#llm_bench; random tokens are ours.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from genai_layer import PromptError, Tokenizer
from genai_layer.files import is_file

Prompt = str | list[int]
"""A text, or token ids."""

_DEFAULT = "What is OpenVINO?"


def read_prompts(text: str | None, files: Sequence[Path]) -> list[str]:
    """Return a text, or those of files; without both, llm_bench's default.

    Raises:
        PromptError: a file cannot be read, or has a line that is not an object with a prompt.
    """
    if text is not None:
        return [text]
    return [prompt for path in files for prompt in _read(path)] if files else [_DEFAULT]


def random_prompt(tokenizer: Tokenizer, count: int, seed: int) -> list[int]:
    """Return random token ids without special tokens."""
    special = set(tokenizer.special_tokens.values())
    usable = [id for id in range(tokenizer.vocabulary_size) if id not in special]
    return np.random.default_rng(seed).choice(usable, count).tolist()


def _read(path: Path) -> list[str]:
    """Return the prompts of a file, one per line; empty lines are skipped."""
    if not is_file(path, PromptError):
        raise PromptError(f"{path}: no such file; name a file of JSON lines")
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError) as error:
        raise PromptError(f"{path}: cannot be read: {error}") from None
    prompts = [_prompt(f"{path}:{n}", line) for n, line in enumerate(lines, 1) if line.strip()]
    if not prompts:
        raise PromptError(f'{path}: no prompts; write lines of {{"prompt": "…"}}')
    return prompts


def _prompt(where: str, line: str) -> str:
    try:
        found: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise PromptError(f'{where}: not JSON: {error}; write {{"prompt": "…"}}') from None
    prompt = cast(dict[str, Any], found).get("prompt") if isinstance(found, dict) else None
    if not isinstance(prompt, str) or not prompt:
        raise PromptError(f'{where}: no text under "prompt"; write {{"prompt": "…"}}')
    return prompt
