"""Parameters of speech recognition, in addition to those of any generation.

Source: openvino_genai.WhisperGenerationConfig.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, cast

from pydantic import Field

from genai_layer.checked import checked
from genai_layer.errors import ConfigError
from genai_layer.generation_config import GenerationConfig
from genai_layer.generation_fields import Count
from genai_layer.generation_rules import Rule, contradictions, unsupported

_UNSUPPORTED = (
    *("num_beams", "num_return_sequences", "echo", "logprobs", "stop_strings", "tree_depth"),
    *("num_assistant_tokens", "assistant_confidence_threshold", "structured_output_config"),
    *("parsers", "adapters"),
)

Token = Annotated[int, Field(ge=0, lt=1 << 31)]


class WhisperGenerationConfig(GenerationConfig):
    """Parameters of a transcription."""

    _not_in_files: ClassVar[frozenset[str]] = GenerationConfig._not_in_files | {
        "translate_token_id",
        "transcribe_token_id",
        "language",
        "task",
        "return_timestamps",
        "word_timestamps",
        "initial_prompt",
        "hotwords",
    }

    decoder_start_token_id: Token = 50258
    pad_token_id: Token = 50257
    translate_token_id: Token = 50358
    transcribe_token_id: Token = 50359
    prev_sot_token_id: Token = 50361
    """Token before the context (previous text)."""
    no_timestamps_token_id: Token = 50363
    """Token for "no timestamps"; timestamp tokens follow it in the vocabulary."""
    max_initial_timestamp_index: Annotated[int, Field(ge=0)] = 50
    """Latest timestamp, in steps, at which a text may begin."""
    is_multilingual: bool = True
    language: str | None = None
    """"en" or "<|en|>"; None detects the language from the audio."""
    lang_to_id: dict[str, Token] = Field(default_factory=dict[str, int])
    """Language tokens by name, e.g. "<|en|>"."""
    task: str | None = None
    """"transcribe" or "translate"; None transcribes."""
    return_timestamps: bool = False
    word_timestamps: bool = False
    """Timestamps of words; the pipeline must be created with word_timestamps=True."""
    alignment_heads: list[tuple[Count, Count]] = Field(default_factory=list[tuple[int, int]])
    """Layers and heads of cross-attention that follow the speech, for timestamps of words."""
    initial_prompt: str | None = None
    """Context of the first window's text, e.g. names and their spelling."""
    hotwords: str | None = None
    """Context of every window's text."""
    begin_suppress_tokens: list[Token] = Field(default_factory=list[int])
    """Tokens that are forbidden at the beginning of a text."""
    suppress_tokens: list[Token] = Field(default_factory=list[int])
    """Tokens that are forbidden everywhere."""
    apply_chat_template: bool = False

    @checked
    def __init__(
        self, json_path: str | bytes | os.PathLike[str] | None = None, **values: Any
    ) -> None:
        # Without this method, type checkers derive one from the fields, which has no json_path.
        super().__init__(json_path, **values)

    @classmethod
    def _values_of(cls, found: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields among a file's entries.

        Raises:
            ConfigError: an entry lacks a task's token.
        """
        values, tasks = super()._values_of(found), found.get("task_to_id")
        if isinstance(tasks, dict):
            ids = cast(dict[str, Any], tasks)
            for task in ("transcribe", "translate"):
                if task not in ids:
                    raise ConfigError(f"task_to_id: {task!r} is missing; add it")
                values[f"{task}_token_id"] = ids[task]
        return values

    @property
    def first_timestamp(self) -> int:
        """Token of the timestamp 0."""
        return self.no_timestamps_token_id + 1

    @property
    def task_token_id(self) -> int:
        """Token of the task."""
        return self.translate_token_id if self.task == "translate" else self.transcribe_token_id

    @checked
    def language_token_id(self, language: str) -> int:
        """Return a language's token.

        Raises:
            ConfigError: the model does not support the language.
        """
        name = language if language.startswith("<|") else f"<|{language}|>"
        if name not in self.lang_to_id:
            known = ", ".join(sorted(each.strip("<|>") for each in self.lang_to_id))
            raise ConfigError(f"language = {language!r}: the model supports {known or 'none'}")
        return self.lang_to_id[name]

    def _rules(self) -> Iterator[Rule]:
        yield from contradictions(self)
        if self.is_multilingual:
            yield from self._rules_of_languages()
        else:
            for name in ("language", "task"):
                yield (
                    getattr(self, name) is not None,
                    f"{name}: only for multilingual models; set it to None",
                )
        yield (
            self.word_timestamps and not self.alignment_heads,
            "word_timestamps = True: alignment_heads is empty; set it",
        )
        yield from unsupported(self)
        for name in _UNSUPPORTED:
            default = type(self).model_fields[name].get_default(call_default_factory=True)
            value = getattr(self, name)
            yield (
                value != default,
                f"{name} is not supported for speech; set it to {default!r}",
            )

    def _rules_of_languages(self) -> Iterator[Rule]:
        """Yield the rules for a multilingual model.

        Raises:
            ConfigError: the model does not support the language.
        """
        yield (
            not self.lang_to_id,
            "lang_to_id is empty; start from the pipeline's get_generation_config()",
        )
        if self.language is not None:
            self.language_token_id(self.language)
        yield (
            self.task not in (None, "transcribe", "translate"),
            f"task = {self.task!r}: must be 'transcribe' or 'translate'",
        )
