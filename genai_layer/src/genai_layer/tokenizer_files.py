"""JSON files of a folder that describe its tokenizer, beside tokenizer.json.

Source: files of Hugging Face folders, as transformers writes them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, cast

from tokenizers import AddedToken

from genai_layer.errors import ModelError
from genai_layer.files import read_object
from genai_layer.tokenizer_classes import with_defaults


@dataclass(frozen=True, slots=True)
class TokenizerFiles:
    """Entries of the files; a missing file has none."""

    settings: dict[str, Any]
    """tokenizer_config.json."""
    mapped: dict[str, Any]
    """special_tokens_map.json."""
    config: dict[str, Any]
    """config.json."""
    added: dict[int, AddedToken]
    """Tokens that tokenizer_config.json lists, by id."""

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read a folder.

        Raises:
            ModelError: a file is broken.
        """
        path = folder / "tokenizer_config.json"
        settings = read_object(path)
        mapped = read_object(folder / "special_tokens_map.json")
        config = read_object(folder / "config.json")
        return cls(settings, mapped, config, _added_tokens(settings, path))

    def with_defaults(self) -> Self:
        """Return the files with the defaults of the tokenizer's class, if there are settings."""
        return replace(self, settings=with_defaults(self.settings)) if self.settings else self


def _added_tokens(settings: dict[str, Any], path: Path) -> dict[int, AddedToken]:
    listed: dict[str, dict[str, Any]] = settings.get("added_tokens_decoder") or {}
    try:
        return {int(number): AddedToken(**given) for number, given in listed.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise ModelError(f"{path}: added_tokens_decoder is broken: {error}") from None


def content_of(given: object) -> str:
    """Return the text of a special token, which is given as a text or as an object."""
    if isinstance(given, dict):
        given = cast("dict[str, Any]", given).get("content")
    return given if isinstance(given, str) else ""
