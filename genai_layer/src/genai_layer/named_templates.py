"""Named chat templates of a folder: one for chats, and one for chats with tools.

Source: transformers 4.57, PreTrainedTokenizerBase.get_chat_template and _from_pretrained.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from genai_layer.errors import ModelError
from genai_layer.files import is_file, read_object

DEFAULT, TOOL_USE = "default", "tool_use"
_PLAIN = "chat_template.jinja"
_SETTINGS = ("chat_template.json", "processor_config.json", "tokenizer_config.json")
"""Files that may have templates, of which the first counts."""


def find_template(folder: Path) -> str:
    """Return the template of the .jinja file, else of the first other file; empty if none has one.

    Raises:
        ModelError: a file is broken.
    """
    if is_file(folder / _PLAIN):
        return read_template(folder / _PLAIN)
    for name in _SETTINGS:
        found = read_object(folder / name).get("chat_template")
        if isinstance(found, str):
            return found
        if isinstance(found, list):
            return named_templates(cast(list[Any], found)).get(DEFAULT, "")
    return ""


def named_templates(listed: Sequence[Any]) -> dict[str, str]:
    """Return the templates of a list of names and templates, as in tokenizer_config.json."""
    entries = [cast(dict[str, Any], entry) for entry in listed if isinstance(entry, dict)]
    return {str(e["name"]): str(e["template"]) for e in entries if {"name", "template"} <= e.keys()}


def tool_template(folder: Path) -> str:
    """Return the template for chats with tools; empty if the folder has no separate one.

    Templates in files of their own replace those that the settings list.

    Raises:
        ModelError: a file is broken.
    """
    own = folder / "additional_chat_templates" / f"{TOOL_USE}.jinja"
    if is_file(own):
        return read_template(own)
    if is_file(folder / _PLAIN):
        return ""
    for name in _SETTINGS:
        found = read_object(folder / name).get("chat_template")
        if isinstance(found, list):
            return named_templates(cast(list[Any], found)).get(TOOL_USE, "")
        if found:
            return ""
    return ""


def read_template(path: Path) -> str:
    """Return the template of a .jinja file.

    Raises:
        ModelError: the file cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot be read: {error}") from error
