"""Parameters of speech recognition, in addition to those of any generation.

Source: openvino_genai.WhisperGenerationConfig. Word timestamps are not supported yet.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast

from pydantic import Field

from genai_layer.errors import ConfigError, ModelError
from genai_layer.generation_config import GenerationConfig
from genai_layer.json_file import read_object

Token = Annotated[int, Field(ge=0, lt=1 << 31)]


class WhisperGenerationConfig(GenerationConfig):
    """Parameters of a transcription."""

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
    task: Literal["transcribe", "translate"] | None = None
    return_timestamps: bool = False
    word_timestamps: Literal[False] = False
    initial_prompt: str | None = None
    """Context of the first window's text, e.g. names and their spelling."""
    hotwords: str | None = None
    """Context of every window's text."""
    begin_suppress_tokens: list[Token] = Field(default_factory=list[int])
    """Tokens that are forbidden at the beginning of a text."""
    suppress_tokens: list[Token] = Field(default_factory=list[int])
    """Tokens that are forbidden everywhere."""
    apply_chat_template: bool = False

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Read a Hugging Face ``generation_config.json``; unknown entries are ignored.

        Raises:
            ModelError: the file is not a JSON object, or a value has a wrong type.
        """
        config = super().from_file(path)
        tasks: object = read_object(path).get("task_to_id")
        if isinstance(tasks, dict):
            ids = cast(dict[str, Any], tasks)
            try:
                for task in ("transcribe", "translate"):
                    setattr(config, f"{task}_token_id", ids[task])
            except (ConfigError, KeyError) as error:
                raise ModelError(f"{path}: task_to_id: {error}") from error
        return config

    @property
    def first_timestamp(self) -> int:
        """Token of the timestamp 0."""
        return self.no_timestamps_token_id + 1

    @property
    def task_token_id(self) -> int:
        """Token of the task."""
        return self.translate_token_id if self.task == "translate" else self.transcribe_token_id

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

    def _problems(self) -> list[tuple[bool, str]]:
        if self.is_multilingual and self.language is not None:
            self.language_token_id(self.language)
        named = self.language is not None or self.task is not None
        return [
            *super()._problems(),
            (
                self.is_multilingual and not self.lang_to_id,
                "lang_to_id is empty; start from the pipeline's get_generation_config()",
            ),
            (
                not self.is_multilingual and named,
                "language and task are for multilingual models; leave them out",
            ),
        ]
