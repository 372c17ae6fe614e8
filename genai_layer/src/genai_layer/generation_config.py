"""Parameters of a generation.

Source: openvino_genai.GenerationConfig, docs/reference/genai.md#generation-config,
docs/reference/genai.md#validation. The fields exist completely; ``validate`` rejects values that
need an unsupported method.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self, cast

from genai_layer.checked import checked
from genai_layer.errors import ConfigError, ModelError
from genai_layer.files import is_file, read_object, whole
from genai_layer.generation_fields import UNSET as UNSET
from genai_layer.generation_fields import GenerationFields, StopCriteria
from genai_layer.generation_rules import Rule, contradictions, unsupported

_STOP_CRITERIA = {True: StopCriteria.EARLY, "never": StopCriteria.NEVER}
"""Values of Hugging Face's ``early_stopping``; any other is the default."""

_NO_LIMIT = ("max_new_tokens", "max_length", "top_k", "no_repeat_ngram_size")
"""Fields of a file where -1 stands for "no limit"."""


def stops_of_file(given: object) -> dict[str, Any]:
    """Return the fields that an ``eos_token_id`` of a file sets: an id, or a list of stop tokens.

    The first of a list is the end-of-text id. None and an empty list set nothing.

    Raises:
        ConfigError: an id of a list is negative.
    """
    if isinstance(given, list):
        found = cast("list[object]", given)
        if negative := [token for token in found if isinstance(token, int) and token < 0]:
            raise ConfigError(f"eos_token_id = {found}: remove {negative}, which no token has")
        return {"eos_token_id": found[0], "stop_token_ids": found} if found else {}
    return {} if given is None else {"eos_token_id": given}


class GenerationConfig(GenerationFields):
    """Parameters of a generation, from a Hugging Face ``generation_config.json`` or keywords.

    Unknown names and wrong types raise ConfigError; ``validate`` checks combinations of values.

    Args:
        json_path: the file, instead of keywords; its unknown entries are ignored.
        values: fields. An end-of-text id that is given here becomes a stop token.

    Raises:
        ConfigError: a name is unknown, or a value has a wrong type.
        ModelError: the file is missing or not a JSON object, or a value has a wrong type.
    """

    _not_in_files: ClassVar[frozenset[str]] = frozenset(
        {
            "stop_token_ids",
            "stop_criteria",
            "apply_chat_template",
            "rng_seed",
            "pruning_ratio",
            "relevance_weight",
            "return_omni_outputs",
            "adapters",
            "structured_output_config",
            "parsers",
            "logit_bias",
        }
    )
    """Fields that a file does not set."""

    @checked
    def __init__(
        self, json_path: str | bytes | os.PathLike[str] | None = None, **values: Any
    ) -> None:
        if json_path is None:
            super().__init__(**values)
        elif values:
            raise ConfigError(f"{', '.join(values)}: given in addition to json_path; pass one")
        else:
            path = Path(os.fsdecode(json_path))
            if not is_file(path):
                raise ModelError(f"{path}: no such file; pass the path of a generation_config.json")
            try:
                super().__init__(**self._values_of(read_object(path)))
            except ConfigError as error:
                raise ModelError(f"{path}: {error}") from error
        if self.eos_token_id >= 0:
            self.stop_token_ids = {*self.stop_token_ids, self.eos_token_id}

    @classmethod
    def _values_of(cls, found: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields among a file's entries."""
        names = cls.model_fields.keys() - cls._not_in_files
        values: dict[str, Any] = {
            name: whole(value)
            for name, value in found.items()
            if name in names and value is not None
        }
        values |= stops_of_file(values.pop("eos_token_id", None))
        for name in _NO_LIMIT:
            if values.get(name) == -1:
                del values[name]
        early = found.get("early_stopping")
        if isinstance(early, bool | str) and early in _STOP_CRITERIA:
            values["stop_criteria"] = _STOP_CRITERIA[early]
        return values

    @checked
    def set_eos_token_id(self, tokenizer_eos_token_id: int) -> None:
        """Set the end-of-text id, and make it a stop token."""
        self.eos_token_id = tokenizer_eos_token_id
        self.stop_token_ids = {*self.stop_token_ids, tokenizer_eos_token_id}

    def update_generation_config(self, **values: Any) -> None:
        """Change some fields; if one is rejected, none changes. The end-of-text id becomes a stop.

        Raises:
            ConfigError: a name is unknown, or a value has a wrong type.
        """
        changed = self.updated(values)
        for name in type(self).model_fields:
            super().__setattr__(name, getattr(changed, name))

    @checked
    def updated(self, values: Mapping[str, Any]) -> Self:
        """Return a copy with some fields changed; its end-of-text id is a stop token.

        Raises:
            ConfigError: a name is unknown, or a value has a wrong type.
        """
        current = {name: getattr(self, name) for name in type(self).model_fields}
        self._check_names(values)
        return type(self)(**{**current, **values})

    @checked
    def with_stops_of(self, default: GenerationConfig) -> Self:
        """Return a copy; end-of-text id and stop tokens that it lacks are the default's."""
        values: dict[str, Any] = {}
        if self.eos_token_id < 0 <= default.eos_token_id:
            values["eos_token_id"] = default.eos_token_id
        if not self.stop_token_ids:
            values["stop_token_ids"] = default.stop_token_ids
        return self.updated(values)

    @checked
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
            ConfigError: values contradict each other, or need an unsupported method.
        """
        for broken, message in self._rules():
            if broken:
                raise ConfigError(message)
        if self.structured_output_config is not None:
            self.structured_output_config.validate()

    def _rules(self) -> Iterator[Rule]:
        yield from contradictions(self)
        yield from unsupported(self)
