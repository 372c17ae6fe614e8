"""Parameters of a generation.

Source: openvino_genai.GenerationConfig, docs/reference/genai.md#generation-config,
docs/reference/genai.md#validation. Unsupported parameters (beam search, several sequences,
speculative decoding, structured output) are not fields.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Mapping
from copy import copy
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from genai_layer.errors import ConfigError, ModelError
from genai_layer.lora.adapter_config import AdapterConfig

UNSET = (1 << 64) - 1
"""The value for "no limit", as in openvino_genai."""

NOT_SUPPORTED = {
    "num_beams": 1,
    "num_beam_groups": 1,
    "num_return_sequences": 1,
    "echo": False,
    "num_assistant_tokens": 0,
    "assistant_confidence_threshold": 0.0,
    "max_ngram_size": 0,
    "structured_output_config": None,
    "parsers": None,
}
"""Fields of openvino_genai without effect here, with the only value they may have."""


def _one_or_many(value: object) -> object:
    """Accept one string for a set of strings, and a list for a set."""
    if isinstance(value, str):
        return {value}
    return set(value) if isinstance(value, list | tuple) else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] (pydantic checks the items)


class GenerationConfig(BaseModel):
    """Parameters of a generation.

    Unknown names and wrong types raise ConfigError; ``validate`` checks combinations of values.
    """

    model_config = ConfigDict(
        extra="forbid", strict=True, validate_assignment=True, arbitrary_types_allowed=True
    )

    max_new_tokens: Annotated[int, Field(ge=0, le=UNSET)] = UNSET
    max_length: Annotated[int, Field(ge=0, le=UNSET)] = UNSET
    """Length of prompt and generated tokens together; used only if max_new_tokens is not set."""
    min_new_tokens: Annotated[int, Field(ge=0)] = 0
    """Number of tokens before which no stop token is generated."""
    ignore_eos: bool = False
    """Ignore stop tokens; stop strings still end the generation."""
    eos_token_id: int = -1
    stop_token_ids: Annotated[set[int], BeforeValidator(_one_or_many)] = set()
    stop_strings: Annotated[set[str], BeforeValidator(_one_or_many)] = set()
    include_stop_str_in_output: bool = False
    logprobs: Annotated[int, Field(ge=0)] = 0
    """Any value above 0 makes the score the sum of the raw log-probabilities."""
    apply_chat_template: bool = True
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    do_sample: bool = False
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: Annotated[int, Field(ge=0, le=UNSET)] = UNSET
    """Number of likeliest tokens to sample from; 0 disables the filter, too."""
    min_p: float = 0.0
    rng_seed: Annotated[int, Field(ge=0, lt=1 << 32)] = 0
    adapters: Annotated[AdapterConfig | None, AfterValidator(copy)] = None
    """LoRA adapters among those of the pipeline; None keeps the current ones."""

    def __init__(self, **values: Any) -> None:
        _check_names(values, type(self).model_fields)
        try:
            super().__init__(**_supported(values))
        except ValidationError as error:
            raise _config_error(error) from None

    def __setattr__(self, name: str, value: Any) -> None:
        _check_names({name: value}, type(self).model_fields)
        try:
            super().__setattr__(name, value)
        except ValidationError as error:
            raise _config_error(error) from None

    @model_validator(mode="before")
    @classmethod
    def _eos_stops(cls, values: Any) -> Any:
        """Add an end-of-text id that is given at construction to the stop tokens."""
        if isinstance(values, Mapping) and isinstance(values.get("eos_token_id"), int):  # pyright: ignore[reportUnknownMemberType] (any mapping)
            given: dict[str, Any] = dict(values)  # pyright: ignore[reportUnknownArgumentType]
            if given["eos_token_id"] >= 0:
                stops = _one_or_many(given.get("stop_token_ids", set()))
                if isinstance(stops, set):
                    given["stop_token_ids"] = {*stops, given["eos_token_id"]}  # pyright: ignore[reportUnknownArgumentType]
            return given
        return values  # pyright: ignore[reportUnknownVariableType]

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Read a Hugging Face ``generation_config.json``; unknown entries are ignored.

        Raises:
            ModelError: the file is not a JSON object, or a value has a wrong type.
        """
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ModelError(f"{path}: cannot be read: {error}") from error
        if not isinstance(found, dict):
            raise ModelError(f"{path}: not a JSON object")
        values: dict[str, Any] = {
            name: value
            for name, value in found.items()  # pyright: ignore[reportUnknownVariableType] (JSON)
            if name in cls.model_fields and value is not None and name not in _NOT_FROM_FILE
        }
        eos = values.get("eos_token_id")
        if isinstance(eos, list) and eos:
            values["stop_token_ids"] = eos
            values["eos_token_id"] = eos[0]
        for name in ("max_new_tokens", "max_length"):
            if values.get(name) == -1:
                del values[name]
        try:
            return cls(**values)
        except ConfigError as error:
            raise ModelError(f"{path}: {error}") from error

    def set_eos_token_id(self, eos_token_id: int) -> None:
        """Set the end-of-text id, and make it a stop token."""
        self.eos_token_id = eos_token_id
        self.stop_token_ids = {*self.stop_token_ids, eos_token_id}

    def update_generation_config(self, **values: Any) -> None:
        """Change some fields; if one is rejected, none changes.

        Raises:
            ConfigError: a name is unknown, or a value has a wrong type.
        """
        changed = self.updated(values)
        for name in type(self).model_fields:
            super().__setattr__(name, getattr(changed, name))

    def updated(self, values: Mapping[str, Any]) -> Self:
        """Return a copy with some fields changed.

        Raises:
            ConfigError: a name is unknown, or a value has a wrong type.
        """
        return type(self)(**{**self.model_dump(), **values})

    def with_stops_of(self, default: GenerationConfig) -> Self:
        """Return a copy; end-of-text id and stop tokens that it lacks are the default's."""
        values: dict[str, Any] = {}
        if self.eos_token_id < 0 <= default.eos_token_id:
            values["eos_token_id"] = default.eos_token_id
        if not self.stop_token_ids:
            values["stop_token_ids"] = default.stop_token_ids
        return self.updated(values)

    @property
    def is_greedy_decoding(self) -> bool:
        """True if always the most likely token is chosen."""
        return not self.do_sample

    @property
    def is_multinomial(self) -> bool:
        """True if tokens are sampled."""
        return self.do_sample

    def get_max_new_tokens(self, prompt_length: int = 0) -> int:
        """Return the maximum number of tokens generated after a prompt.

        Raises:
            ConfigError: max_length leaves no room for a token.
        """
        if self.max_new_tokens != UNSET or self.max_length == UNSET:
            return self.max_new_tokens
        if self.max_length <= prompt_length:
            raise ConfigError(
                f"max_length = {self.max_length} leaves no room after a prompt of {prompt_length} "
                "tokens; raise max_length, or set max_new_tokens"
            )
        return self.max_length - prompt_length

    def validate(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] (openvino_genai's name; pydantic's is deprecated)
        """Check the combination of values.

        Raises:
            ConfigError: values contradict each other.
        """
        for wrong, message in self._problems():
            if wrong:
                raise ConfigError(message)

    def _problems(self) -> list[tuple[bool, str]]:
        unlimited = self.max_new_tokens == UNSET and self.max_length == UNSET
        stops = self.eos_token_id >= 0 or self.stop_token_ids or self.stop_strings
        problems = [
            (
                self.eos_token_id >= 0 and self.eos_token_id not in self.stop_token_ids,
                "eos_token_id must be among stop_token_ids; use set_eos_token_id",
            ),
            (any(i < 0 for i in self.stop_token_ids), "stop_token_ids must not be negative"),
            ("" in self.stop_strings, "a stop string must not be empty"),
            (
                self.ignore_eos and unlimited,
                "ignore_eos: nothing ends the generation; set max_new_tokens or max_length",
            ),
            (
                unlimited and not stops,
                "nothing ends the generation; set max_new_tokens, eos_token_id or a stop string",
            ),
            (self.max_new_tokens == 0, "max_new_tokens = 0: must be at least 1"),
            (
                self.min_new_tokens > self.max_new_tokens,
                f"min_new_tokens = {self.min_new_tokens}: exceeds max_new_tokens",
            ),
            (not -2 <= self.frequency_penalty <= 2, "frequency_penalty must be from -2 to 2"),
            (not -2 <= self.presence_penalty <= 2, "presence_penalty must be from -2 to 2"),
            (not self.repetition_penalty > 0, "repetition_penalty must be positive"),
        ]
        if self.do_sample:
            problems += [
                (not 0 < self.top_p <= 1, "top_p must be above 0 and at most 1"),
                (not self.temperature > 0, "temperature must be positive"),
                (not 0 <= self.min_p < 1, "min_p must be at least 0 and below 1"),
            ]
        return problems


_NOT_FROM_FILE = frozenset(
    {"rng_seed", "apply_chat_template", "stop_strings", "logprobs", "adapters"}
)


def _check_names(values: Mapping[str, Any], fields: Collection[str]) -> None:
    for name in values:
        if name not in fields and name not in NOT_SUPPORTED:
            near = difflib.get_close_matches(name, [*fields], 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ConfigError(f"unknown generation parameter {name!r}{hint}")


def _supported(values: Mapping[str, Any]) -> dict[str, Any]:
    """Drop fields that have no effect here.

    Raises:
        ConfigError: a field has another value than the neutral one.
    """
    for name, neutral in NOT_SUPPORTED.items():
        if name in values and values[name] not in (neutral, None):
            raise ConfigError(f"{name} = {values[name]!r} is not supported; leave it out")
    return {name: value for name, value in values.items() if name not in NOT_SUPPORTED}


def _config_error(error: ValidationError) -> ConfigError:
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"])
    return ConfigError(f"{name} = {first['input']!r}: {first['msg']}")
