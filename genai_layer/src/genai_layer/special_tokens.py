"""Texts and ids of the special tokens bos, eos and pad: the precedence of a folder's files.

Source: openvino_genai.Tokenizer, measured; docs/reference/genai.md#tokenizer. Ours: a text without
an id has the id of the vocabulary; texts of special_tokens_map.json that are not objects count
after those of tokenizer_config.json, where the files are not those that transformers reads.
"""

from __future__ import annotations

from collections.abc import Mapping

import tokenizers

from genai_layer.files import whole
from genai_layer.openvino_tokenizer import SPECIAL
from genai_layer.tokenizer_files import TokenizerFiles, content_of

Texts = dict[str, str]
Ids = dict[str, int]


def find_special_tokens(
    tokenizer: tokenizers.Tokenizer, files: TokenizerFiles, converted: Mapping[str, int]
) -> tuple[Texts, Ids]:
    """Return texts and ids by "bos", "eos" and "pad"; a missing one is empty, and -1.

    Args:
        tokenizer: the tokenizer.
        files: the JSON files.
        converted: ids of the tokenizer model's rt_info, which precede all others.
    """
    contents = {number: token.content for number, token in files.added.items()}
    listed = {content: number for number, content in contents.items()}
    texts = {name: _text(f"{name}_token", files) for name in SPECIAL}
    ids = {name: _given(files.config.get(f"{name}_token_id")) for name in SPECIAL}
    for name, text in texts.items():
        if text and ids[name] < 0:
            ids[name] = _first(listed.get(text), tokenizer.token_to_id(text))
        texts[name] = text or contents.get(ids[name], "")
    if files.settings and not texts["pad"]:
        texts["pad"] = texts["eos"]
        if listed and ids["pad"] < 0:
            ids["pad"] = listed.get(texts["pad"], ids["eos"])
    ids |= converted
    for name, number in ids.items():
        if number >= 0:
            texts[name] = texts[name] or tokenizer.id_to_token(number) or ""
    return texts, ids


def _first(*numbers: int | None) -> int:
    return next((number for number in numbers if number is not None), -1)


def _text(name: str, files: TokenizerFiles) -> str:
    mapped = files.mapped.get(name)
    texts = [content_of(given) for given in (mapped, files.settings.get(name))]
    return next(filter(None, texts if isinstance(mapped, dict) else texts[::-1]), "")


def _given(value: object) -> int:
    """Return the id that config.json gives; a list has stop tokens, and no special token."""
    number = whole(value)
    return number if type(number) is int else -1
