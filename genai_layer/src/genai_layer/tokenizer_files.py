"""JSON files of a folder that describe its tokenizer, beside tokenizer.json.

Source: files of Hugging Face folders, as transformers writes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, cast

from tokenizers import AddedToken

from genai_layer.errors import ModelError
from genai_layer.files import read_object
from genai_layer.tokenizer_classes import with_class, with_defaults

NAMED = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
"""Special tokens in the order in which they are added."""

_DECODER, _MORE = "added_tokens_decoder", "additional_special_tokens"

_FLAGS = (
    *("add_bos_token", "add_eos_token", "add_prefix_space", "do_lower_case", "strip_accents"),
    *("tokenize_chinese_chars", "split_special_tokens", "clean_up_tokenization_spaces"),
)
"""Settings that are true, false or null."""


@dataclass(frozen=True, slots=True)
class TokenizerFiles:
    """Entries of the files; a missing file has none."""

    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    """tokenizer_config.json."""
    mapped: dict[str, Any] = field(default_factory=dict[str, Any])
    """special_tokens_map.json."""
    numbered: dict[str, Any] = field(default_factory=dict[str, Any])
    """added_tokens.json: ids by token."""
    config: dict[str, Any] = field(default_factory=dict[str, Any])
    """config.json."""
    added: dict[int, AddedToken] = field(default_factory=dict[int, AddedToken])
    """Tokens that tokenizer_config.json lists, by id."""

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read a folder.

        Raises:
            ModelError: a file is broken.
        """
        path = folder / "tokenizer_config.json"
        settings = read_object(path)
        _check_flags(settings, path)
        mapped = read_object(folder / "special_tokens_map.json")
        numbered = read_object(folder / "added_tokens.json")
        config = read_object(folder / "config.json")
        return cls(settings, mapped, numbered, config, _added_tokens(settings, path))

    @property
    def has_decoder(self) -> bool:
        """Presence of added_tokens_decoder in tokenizer_config.json."""
        return _DECODER in self.settings

    @property
    def adding(self) -> str:
        """Name of the file that lists the added tokens."""
        return "tokenizer_config.json" if self.has_decoder else "added_tokens.json"

    def as_transformers(self) -> Self:
        """Return the files with the class of the tokenizer, and with the defaults of the class.

        Without added_tokens_decoder, the settings have the entries of special_tokens_map.json, and
        the added tokens are those of added_tokens.json. Files without settings stay as they are.

        Raises:
            ModelError: an id of added_tokens.json is not an integer.
        """
        if not self.settings:
            return self
        settings, added = with_class(self.settings, self.config), self.added
        if not self.has_decoder:
            settings = _with_map(settings, self.mapped)
            added = _numbered_tokens(self.numbered, settings)
        return replace(self, settings=with_defaults(settings), added=added)


def _check_flags(settings: Mapping[str, Any], path: Path) -> None:
    for name in _FLAGS:
        if not isinstance(value := settings.get(name), bool | None):
            raise ModelError(f"{path}: {name} = {value!r}: write true, false or null")


def _added_tokens(settings: dict[str, Any], path: Path) -> dict[int, AddedToken]:
    listed: dict[str, dict[str, Any]] = settings.get(_DECODER) or {}
    try:
        return {int(number): AddedToken(**given) for number, given in listed.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise ModelError(f"{path}: {_DECODER} is broken: {error}") from None


def _with_map(settings: Mapping[str, Any], mapped: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with the special tokens of a map, which precede; lists are joined."""
    merged = {**settings, **mapped}
    lists: list[Any] = [settings.get(_MORE) or [], mapped.get(_MORE) or []]
    if all(isinstance(each, list) for each in lists):
        merged[_MORE] = [*lists[0], *lists[1]]
    return merged


def _numbered_tokens(
    numbered: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[int, AddedToken]:
    """Return the tokens of added_tokens.json by id; special are those that the settings name."""
    special = {*_special_texts(settings)}
    for token, number in numbered.items():
        if type(number) is not int:
            raise ModelError(f"added_tokens.json: {token!r} has id {number!r}: write an integer")
    return {
        number: AddedToken(token, normalized=token not in special, special=token in special)
        for token, number in numbered.items()
    }


def _special_texts(settings: Mapping[str, Any]) -> Iterator[str]:
    yield from (content_of(settings.get(f"{name}_token")) for name in NAMED)
    more: object = settings.get(_MORE)
    yield from map(content_of, cast("list[object]", more) if isinstance(more, list) else ())


def content_of(given: object) -> str:
    """Return the text of a special token, which is given as a text or as an object."""
    if isinstance(given, dict):
        given = cast("dict[str, Any]", given).get("content")
    return given if isinstance(given, str) else ""
