"""Content of a tokenizer's files: what a folder says, and what tokenizer models replace of it.

The files are a folder's, or two models in memory: the forms of the arguments of ``Tokenizer``.

Source: openvino_genai.Tokenizer, docs/reference/genai.md#tokenizer; files of Hugging Face folders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken

from genai_layer import openvino_tokenizer
from genai_layer.call_form import call_form
from genai_layer.errors import ModelError
from genai_layer.files import is_file, read_object
from genai_layer.named_templates import DEFAULT, named_templates, read_template, tool_template
from genai_layer.openvino_tokenizer import SPECIAL, TokenizerContent, read_model
from genai_layer.properties import check_names, with_dictionary
from genai_layer.tensor import HasData, is_tensor

_MAX_FILE_BYTES = 256 << 20


def read_converted(folder: Path) -> TokenizerContent | None:
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
        return read_template(plain)
    for name in ("chat_template.json", "tokenizer_config.json"):
        found = read_object(folder / name).get("chat_template")
        if isinstance(found, str):
            return found
        if isinstance(found, list):
            return named_templates(found).get(DEFAULT, "")  # pyright: ignore[reportUnknownArgumentType] (JSON)
    return ""


def read_content(source: Path | TokenizerContent) -> TokenizerContent:
    """Return the content of a folder, or of tokenizer models in memory.

    Raises:
        ModelError: a file is missing or broken, or a tokenizer model has a step that is not
            supported.
    """
    content = _read_folder(source) if isinstance(source, Path) else source
    content.tokenizer.no_padding()
    content.tokenizer.no_truncation()
    return content


def _read_folder(folder: Path) -> TokenizerContent:
    """Read a folder's files; its tokenizer model counts if there is no tokenizer.json."""
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
        tool_template=tool_template(folder),
    )
    _find_ids(content, folder)
    if converted is not None:
        content.override(converted)
    return content


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


_TO_CALLER = 6
"""Stack level of the tokenizer's caller for warnings of ``with_dictionary``."""


def find_source(given: Sequence[Any], named: Mapping[str, Any]) -> Path | TokenizerContent:
    """Return the folder, or the tokenizer that was read from models.

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
) -> TokenizerContent:
    check_names(named)
    return read_model(
        tokenizer_model,
        tokenizer_weights.data.tobytes(),
        detokenizer_model,
        detokenizer_weights.data.tobytes(),
    )
