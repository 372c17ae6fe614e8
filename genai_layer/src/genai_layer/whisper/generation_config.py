"""Parameters of speech recognition, beside those of any generation.

Source: openvino_genai.WhisperGenerationConfig. Timestamps of words are not supported yet.
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
    """How to write down what is said."""

    decoder_start_token_id: Token = 50258
    pad_token_id: Token = 50257
    translate_token_id: Token = 50358
    transcribe_token_id: Token = 50359
    prev_sot_token_id: Token = 50361
    """Before what was said before."""
    no_timestamps_token_id: Token = 50363
    """The token before the first time."""
    max_initial_timestamp_index: Annotated[int, Field(ge=0)] = 50
    """The latest time, in steps, at which a text may begin."""
    is_multilingual: bool = True
    language: str | None = None
    """"en" or "<|en|>"; None is heard from the audio."""
    lang_to_id: dict[str, Token] = Field(default_factory=dict[str, int])
    """Tokens by what they are called: "<|en|>"."""
    task: Literal["transcribe", "translate"] | None = None
    return_timestamps: bool = False
    word_timestamps: Literal[False] = False
    initial_prompt: str | None = None
    """What the first window's text goes on from, e.g. names as they are to be spelt."""
    hotwords: str | None = None
    """The same for every window."""
    begin_suppress_tokens: list[Token] = Field(default_factory=list[int])
    """Tokens that no text begins with."""
    suppress_tokens: list[Token] = Field(default_factory=list[int])
    """Tokens that no text has."""
    apply_chat_template: bool = False

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Read a Hugging Face ``generation_config.json``; what is not of ours is left out.

        Raises:
            ModelError: it is no JSON object, or a value has a wrong type.
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
        """The token of the time 0."""
        return self.no_timestamps_token_id + 1

    @property
    def task_token_id(self) -> int:
        """The token of what is to be done."""
        return self.translate_token_id if self.task == "translate" else self.transcribe_token_id

    def language_token_id(self, language: str) -> int:
        """Give a language's token.

        Raises:
            ConfigError: the model has no such language.
        """
        name = language if language.startswith("<|") else f"<|{language}|>"
        if name not in self.lang_to_id:
            known = ", ".join(sorted(each.strip("<|>") for each in self.lang_to_id))
            raise ConfigError(f"language = {language!r}: the model knows {known or 'none'}")
        return self.lang_to_id[name]

    def _problems(self) -> list[tuple[bool, str]]:
        if self.is_multilingual and self.language is not None:
            self.language_token_id(self.language)
        named = self.language is not None or self.task is not None
        return [
            *super()._problems(),
            (
                self.is_multilingual and not self.lang_to_id,
                "lang_to_id is empty: begin with the pipeline's get_generation_config()",
            ),
            (
                not self.is_multilingual and named,
                "language and task are for multilingual models; leave them out",
            ),
        ]
