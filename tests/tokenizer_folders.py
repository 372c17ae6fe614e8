"""Golden folders of tools/make_tokenizer_setting_goldens.py, by case and form."""

from __future__ import annotations

import base64
import functools
import json
import lzma
from pathlib import Path
from typing import Any

PATH = Path(__file__).resolve().parent / "goldens" / "tokenizer_settings.json.xz"


@functools.cache
def _content() -> dict[str, Any]:
    return json.loads(lzma.decompress(PATH.read_bytes()))


def cases() -> dict[str, dict[str, Any]]:
    """Return the forms of each case; a form has files, and perhaps results of transformers."""
    return _content()["cases"]


def model_types() -> dict[str, str]:
    """Return the fast class that transformers 4 gives to each type of model."""
    return _content()["types"]


def texts() -> list[str]:
    """Return the texts that the results are of."""
    return _content()["texts"]


def write(form: dict[str, Any], folder: Path, *kept: str) -> Path:
    """Write a form's files, or those kept."""
    folder.mkdir(exist_ok=True)
    for name, data in form["files"].items():
        if not kept or name in kept:
            (folder / name).write_bytes(base64.b64decode(data))
    return folder


def difference(tokenizer: Any, row: list[Any], text: str) -> list[Any]:
    """Return what a tokenizer makes of a text if it differs from a golden row; else nothing."""
    ids = tokenizer.encode(text).input_ids.data[0].tolist()
    found = [ids, *(tokenizer.decode(row[0], skip_special_tokens=s) for s in (True, False))]
    return [text, found, row] if found != row else []
