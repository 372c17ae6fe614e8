"""Content of a tokenizer's files: what a folder says, and what tokenizer models replace of it.

Source: openvino_genai.Tokenizer, docs/reference/genai.md#tokenizer; files of Hugging Face folders.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken

from genai_layer.errors import ModelError
from genai_layer.json_file import read_object
from genai_layer.openvino_tokenizer import OpenVINOTokenizer
from genai_layer.tokenizer_files import (
    SPECIAL,
    added_tokens,
    find_template,
    read_converted,
    read_tokenizer,
    special_tokens,
)


@dataclass(slots=True)
class TokenizerContent:
    """A tokenizer, its special tokens and its settings."""

    tokenizer: tokenizers.Tokenizer
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    """Entries of tokenizer_config.json."""
    tokens: dict[str, str] = field(default_factory=lambda: dict.fromkeys(SPECIAL, ""))
    """Special tokens by "bos", "eos" and "pad"; empty if there is none."""
    ids: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SPECIAL, -1))
    """Ids of the special tokens; -1 if there is none."""
    chat_template: str = ""

    def override(self, converted: OpenVINOTokenizer) -> None:
        """Replace what the folder's files say by what the tokenizer model says."""
        for name in SPECIAL:
            if (number := getattr(converted, f"{name}_token_id")) >= 0:
                self.ids[name] = number
                self.tokens[name] = getattr(converted, f"{name}_token")
        self.settings |= converted.settings
        self.chat_template = converted.chat_template or self.chat_template


def read_content(source: Path | OpenVINOTokenizer) -> TokenizerContent:
    """Return the content of a folder, or of tokenizer models in memory.

    Raises:
        ModelError: a file is missing or broken, or a tokenizer model has a step that is not
            supported.
    """
    if isinstance(source, Path):
        content, converted = _read_folder(source)
    else:
        content, converted = TokenizerContent(source.tokenizer), source
    if converted is not None:
        content.override(converted)
    content.tokenizer.no_padding()
    content.tokenizer.no_truncation()
    return content


def _read_folder(folder: Path) -> tuple[TokenizerContent, OpenVINOTokenizer | None]:
    """Read a folder's files; return its tokenizer model, too, if there is no tokenizer.json."""
    converted = read_converted(folder)
    if converted is None:
        tokenizer = read_tokenizer(folder / "tokenizer.json")
        _add_tokens(tokenizer, folder)
    else:
        tokenizer = converted.tokenizer
    content = TokenizerContent(
        tokenizer,
        settings=read_object(folder / "tokenizer_config.json"),
        tokens=special_tokens(folder),
        chat_template=find_template(folder),
    )
    _find_ids(content, folder)
    return content, converted


def _add_tokens(tokenizer: tokenizers.Tokenizer, folder: Path) -> None:
    """Add the tokens that only tokenizer_config.json lists, as transformers does.

    Raises:
        ModelError: the list is broken, or a token's id is not the next free one.
    """
    add: Callable[[list[AddedToken]], int] = tokenizer.add_tokens  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] (its list has no element type)
    for number, token in sorted(added_tokens(folder).items(), key=lambda each: each[0]):
        if add([token]) and tokenizer.token_to_id(token.content) != number:
            raise ModelError(
                f"{folder / 'tokenizer_config.json'}: added token {token.content!r} has id "
                f"{number}, but tokenizer.json assigns another id; save the tokenizer again with "
                "save_pretrained"
            )


def _find_ids(content: TokenizerContent, folder: Path) -> None:
    """Set the special tokens' ids, and the texts of tokens that only have ids.

    The ids are those of config.json, else of tokenizer_config.json, else of the tokens' texts.
    """
    config = read_object(folder / "config.json")
    listed = {token.content: number for number, token in added_tokens(folder).items()}
    for name in SPECIAL:
        given = config.get(f"{name}_token_id")
        if isinstance(given, list) and given:
            given = given[0]  # pyright: ignore[reportUnknownVariableType] (JSON)
        if not isinstance(given, int):
            token = content.tokens[name]
            given = listed.get(token, content.tokenizer.token_to_id(token)) if token else None
        if given is None:
            continue
        content.ids[name] = given
        if not content.tokens[name] and given >= 0:
            content.tokens[name] = content.tokenizer.id_to_token(given) or ""
