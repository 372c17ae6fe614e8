"""Content of a tokenizer's files: what a folder says, and what tokenizer models replace of it.

The files are a folder's, or two models in memory: the forms of the arguments of ``Tokenizer``.

Source: openvino_genai.Tokenizer, docs/reference/genai.md#tokenizer; files of Hugging Face folders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tokenizers

from genai_layer.call_form import call_form
from genai_layer.chat_templates.named import DEFAULT, TOOL_USE, find_templates
from genai_layer.errors import ModelError
from genai_layer.files import is_file, read_text
from genai_layer.openvino_tokenizer import CLEAN_UP, TokenizerModels, read_folder, read_model
from genai_layer.properties import check_names, with_dictionary
from genai_layer.special_tokens import find_special_tokens
from genai_layer.tensor import HasData, is_tensor
from genai_layer.tokenizer_files import TokenizerFiles
from genai_layer.tokenizer_settings import apply_settings, clean_up, cleans_up

_MAX_FILE_BYTES = 256 << 20


@dataclass(slots=True)
class TokenizerContent:
    """A tokenizer, its special tokens and its settings."""

    tokenizer: tokenizers.Tokenizer
    settings: dict[str, Any]
    """Entries of tokenizer_config.json, under those of the tokenizer model."""
    tokens: dict[str, str]
    """Special tokens by "bos", "eos" and "pad"; empty if there is none."""
    ids: dict[str, int]
    """Ids of the special tokens; -1 if there is none."""
    chat_template: str
    """Template of chats; empty if there is none."""
    tool_template: str = ""
    """Template for chats with tools; empty if the chat template is for them, too."""


def read_tokenizer(path: Path) -> tokenizers.Tokenizer:
    """Return the tokenizer of tokenizer.json."""
    if path.stat().st_size > _MAX_FILE_BYTES:
        raise ModelError(f"{path}: larger than 256 MiB")
    try:
        return tokenizers.Tokenizer.from_str(read_text(path))
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror or error}") from error
    except Exception as error:  # the library raises plain Exception
        raise ModelError(f"{path}: not a tokenizer: {error}") from error


def read_content(source: Path | TokenizerModels) -> TokenizerContent:
    """Return the content of a folder, or of tokenizer models in memory.

    Raises:
        ModelError: a file is missing or broken, or a tokenizer model has a step that is not
            supported.
    """
    content = _read_folder(source) if isinstance(source, Path) else _read_models(source)
    content.tokenizer.no_padding()
    content.tokenizer.no_truncation()
    return content


def _read_models(models: TokenizerModels) -> TokenizerContent:
    tokenizer = models.build()
    tokens, ids = find_special_tokens(tokenizer, TokenizerFiles(), models.ids)
    return TokenizerContent(tokenizer, models.settings, tokens, ids, models.chat_template or "")


def _read_folder(folder: Path) -> TokenizerContent:
    """Read a folder: tokenizer.json, else the tokenizer models, whose settings always precede."""
    files, path = TokenizerFiles.read(folder), folder / "tokenizer.json"
    has_models = is_file(folder / "openvino_tokenizer.xml")
    models = read_folder(folder, decodes=not is_file(path)) if has_models else None
    settled = files.as_transformers()
    if is_file(path):
        tokenizer = read_tokenizer(path)
        settings = {**settled.settings, CLEAN_UP: cleans_up(tokenizer, settled.settings)}
        settings |= models.settings if models else {}
        if files.settings:
            apply_settings(tokenizer, replace(settled, settings=settings))
        if settings[CLEAN_UP]:
            clean_up(tokenizer, as_models=models is not None)
    elif models:
        tokenizer, settings = models.build(), files.settings | models.settings
    else:
        raise ModelError(f"{folder}: has no tokenizer.json and no openvino_tokenizer.xml")
    named = files if models else settled
    tokens, ids = find_special_tokens(tokenizer, named, models.ids if models else {})
    templates = find_templates(folder)
    template = models.chat_template if models else None
    template = templates.get(DEFAULT, "") if template is None else template
    tool_template = templates.get(TOOL_USE, "")
    return TokenizerContent(tokenizer, settings, tokens, ids, template, tool_template)


_TO_CALLER = 6
"""Stack level of the tokenizer's caller for warnings of ``with_dictionary``."""


def find_source(given: Sequence[Any], named: Mapping[str, Any]) -> Path | TokenizerModels:
    """Return the folder, or the tokenizer models.

    Args:
        given: (folder, dictionary), or (tokenizer model, weights, detokenizer model, weights).
        named: more of them by name, and properties.

    Raises:
        TypeError: an argument is missing.
        ModelError: a model is broken, or has a step that is not supported.
        PropertyError: a name is not upper case, or a value is None.
    """
    in_memory = "tokenizer_weights" in named or (len(given) > 1 and is_tensor(given[1]))
    form = _of_models if in_memory else _of_folder
    return call_form("Tokenizer", form, given, named)


def _of_folder(
    tokenizer_path: str | Path, properties: Mapping[str, Any] | None = None, **named: Any
) -> Path:
    merged = with_dictionary(properties, named, _TO_CALLER) if properties else named
    # The original adds an input for the second text of pairs; a tokenizer here always has it.
    check_names({name: value for name, value in merged.items() if name != "add_second_input"})
    return Path(tokenizer_path)


def _of_models(
    tokenizer_model: str,
    tokenizer_weights: HasData,
    detokenizer_model: str,
    detokenizer_weights: HasData,
    **named: Any,
) -> TokenizerModels:
    check_names(named)
    return read_model(
        tokenizer_model,
        tokenizer_weights.data.tobytes(),
        detokenizer_model,
        detokenizer_weights.data.tobytes(),
    )
