"""Named chat templates of a folder: one for chats, and one for chats with tools.

Source: transformers 4.57, PreTrainedTokenizerBase.get_chat_template and _from_pretrained; also
measured on 5.24.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from genai_layer.errors import ModelError
from genai_layer.files import is_file, read_object

DEFAULT, TOOL_USE = "default", "tool_use"
_FILES = (
    ("chat_template.jinja", DEFAULT),
    (f"additional_chat_templates/{DEFAULT}.jinja", DEFAULT),
    (f"additional_chat_templates/{TOOL_USE}.jinja", TOOL_USE),
)
"""Files of one template and its name, of which the last counts."""
_SETTINGS = ("chat_template.json", "processor_config.json", "tokenizer_config.json")
"""Files of settings that may have templates, of which the first counts."""


def find_templates(folder: Path) -> dict[str, str]:
    """Return the templates by name; a default one in a file replaces all of the settings.

    Raises:
        ModelError: a file is broken.
    """
    files = {name: read_template(folder / path) for path, name in _FILES if is_file(folder / path)}
    return files if DEFAULT in files else _find_in_settings(folder) | files


def _find_in_settings(folder: Path) -> dict[str, str]:
    """Return the templates of the first file of settings that has some."""
    for name in _SETTINGS:
        found = read_object(folder / name).get("chat_template")
        if isinstance(found, str):
            return {DEFAULT: found}
        if isinstance(found, dict | list):
            return named_templates(cast(Any, found))
    return {}


def named_templates(given: dict[str, Any] | list[Any]) -> dict[str, str]:
    """Return the templates of an object, or of a list of names and templates."""
    if isinstance(given, dict):
        return {name: text for name, text in given.items() if isinstance(text, str)}
    entries = [cast(dict[str, Any], entry) for entry in given if isinstance(entry, dict)]
    return {str(e["name"]): str(e["template"]) for e in entries if {"name", "template"} <= e.keys()}


def read_template(path: Path) -> str:
    """Return the template of a .jinja file; a byte-order mark stays, as in transformers.

    Raises:
        ModelError: the file cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot be read: {error}") from error
