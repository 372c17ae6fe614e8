"""Bytes of each token by its name, as openvino_tokenizers' detokenizers have them.

Source: docs/reference/genai.md#vocabularies.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import tokenizers
from tokenizers import models

FALLBACK_TOKENS = tuple(f"<0x{byte:02X}>" for byte in range(256))
"""Tokens that stand for single bytes, where the vocabulary has no token of a character."""

_FALLBACK = re.compile("<0x([0-9A-Fa-f]{2})>")


def token_bytes(tokenizer: tokenizers.Tokenizer) -> list[bytes]:
    """Return the bytes of each token, in the order of ids; ids without a token have none."""
    known = tokenizer.get_vocab(with_added_tokens=True)
    found = [b""] * (max(known.values(), default=-1) + 1)
    convert = _conversion(tokenizer)
    for token, number in known.items():
        found[number] = convert(token)
    return found


def _conversion(tokenizer: tokenizers.Tokenizer) -> Callable[[str], bytes]:
    model = tokenizer.model
    if isinstance(model, models.WordLevel):
        return lambda token: f" {token}".encode()
    if isinstance(model, models.WordPiece):
        return word_piece_bytes
    if b'"ByteLevel"' in _state(tokenizer.pre_tokenizer):
        return byte_level_bytes
    if isinstance(model, models.Unigram):
        fallback = bool(json.loads(_state(model)).get("byte_fallback"))
        return lambda token: unigram_bytes(token, fallback)
    return str.encode


def _state(part: object) -> bytes:
    """Return the JSON of a tokenizer's part."""
    return b"" if part is None else part.__getstate__()  # pyright: ignore[reportReturnType] (JSON)


def word_piece_bytes(token: str) -> bytes:
    """Return the bytes of WordPiece's token: a space precedes each token that begins a word."""
    if token in ".,!?":
        return token.encode()
    return (token[2:] if token.startswith("##") else f" {token}").encode()


def unigram_bytes(token: str, fallback: bool) -> bytes:
    """Return the bytes of Unigram's token.

    Args:
        token: the token.
        fallback: whether tokens as ``<0x0A>`` stand for bytes.
    """
    number = _FALLBACK.fullmatch(token) if fallback else None
    return bytes.fromhex(number[1]) if number else token.replace("▁", " ").encode()


def byte_level_bytes(token: str) -> bytes:
    """Return the bytes of a byte-level token; a token with other characters is plain text."""
    try:
        return bytes(_BYTES[character] for character in token)
    except KeyError:
        return token.encode()


def byte_level_token(data: bytes) -> str:
    """Return the byte-level token of bytes."""
    return "".join(_CHARACTERS[byte] for byte in data)


def _characters_of_bytes() -> dict[int, str]:
    """Return GPT-2's alphabet: printable bytes are themselves, others follow U+0100."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    shifted = {byte: chr(256 + number) for number, byte in enumerate(others)}
    return {byte: chr(byte) for byte in plain} | shifted


_CHARACTERS = _characters_of_bytes()
_BYTES = {character: byte for byte, character in _CHARACTERS.items()}
