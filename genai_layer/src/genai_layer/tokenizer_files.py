"""Files of a tokenizer: its model, special tokens and chat template.

Source: openvino_genai.Tokenizer, docs/reference/genai.md#tokenizer; files of Hugging Face folders.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tokenizers

from genai_layer import openvino_tokenizer
from genai_layer.errors import ModelError
from genai_layer.files import is_file
from genai_layer.json_file import read_object
from genai_layer.openvino_tokenizer import OpenVINOTokenizer

SPECIAL: tuple[str, ...] = ("bos", "eos", "pad")
_MAX_FILE_BYTES = 256 << 20


def read_converted(folder: Path) -> OpenVINOTokenizer | None:
    """Return the tokenizer of openvino_tokenizer.xml; None if the folder has tokenizer.json."""
    if is_file(folder / "tokenizer.json"):
        return None
    if not is_file(folder / "openvino_tokenizer.xml"):
        raise ModelError(f"{folder}: has no tokenizer.json and no openvino_tokenizer.xml")
    return openvino_tokenizer.read(folder)


def read_tokenizer(path: Path) -> tokenizers.Tokenizer:
    """Return the tokenizer of tokenizer.json."""
    if path.stat().st_size > _MAX_FILE_BYTES:
        raise ModelError(f"{path}: larger than 256 MiB")
    try:
        return tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exception
        raise ModelError(f"{path}: not a tokenizer: {error}") from error


def special_tokens(folder: Path) -> dict[str, str]:
    """Return the special tokens: special_tokens_map.json's, else tokenizer_config.json's."""
    tokens: dict[str, str] = dict.fromkeys(SPECIAL, "")
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        found = read_object(folder / name)
        for special in SPECIAL:
            given = found.get(f"{special}_token")
            if isinstance(given, dict):
                given = given.get("content")  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] (JSON)
            if isinstance(given, str):
                tokens[special] = given
    return tokens


def added_tokens(folder: Path) -> dict[int, tokenizers.AddedToken]:
    """Return the tokens that tokenizer_config.json lists, by id.

    Raises:
        ModelError: the list is broken.
    """
    path = folder / "tokenizer_config.json"
    listed: dict[str, dict[str, Any]] = read_object(path).get("added_tokens_decoder") or {}
    try:
        return {int(number): tokenizers.AddedToken(**given) for number, given in listed.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise ModelError(f"{path}: added_tokens_decoder is broken: {error}") from None


def find_template(folder: Path) -> str:
    """Return the chat template of the .jinja file, else of the .json file, else of the settings."""
    plain = folder / "chat_template.jinja"
    if is_file(plain):
        try:
            return plain.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise ModelError(f"{plain}: cannot be read: {error}") from error
    for name in ("chat_template.json", "tokenizer_config.json"):
        found = read_object(folder / name).get("chat_template")
        if isinstance(found, str):
            return found
        if isinstance(found, list):
            return _named_template(found)  # pyright: ignore[reportUnknownArgumentType] (JSON)
    return ""


def _named_template(templates: Sequence[Any]) -> str:
    """Return the template named "default", else the first."""
    entries: list[dict[str, Any]] = [entry for entry in templates if isinstance(entry, dict)]
    named = {
        str(e["name"]): str(e["template"]) for e in entries if {"name", "template"} <= e.keys()
    }
    return named.get("default", next(iter(named.values()), ""))
