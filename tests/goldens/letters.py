"""Tokenizer of tiny models whose texts are letters: a token is a sign or a pair of letters."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

LETTERS = 256
"""Number of tokens of signs and pairs; the added tokens follow."""
SPACE, LINE = "\u0120", "\u010a"
"""Whitespace in the alphabet of byte-level tokenizers."""


def tokenizer(
    whitespace: Sequence[str], special: Sequence[str], others: Sequence[str] = ()
) -> dict[str, Any]:
    """Return a Hugging Face ``tokenizer.json``.

    Args:
        whitespace: signs before the letters.
        special: added tokens that texts do not show.
        others: further added tokens.
    """
    signs = [*whitespace, *string.ascii_letters, *string.digits, *string.punctuation]
    pairs = [(a, b) for a in string.ascii_lowercase for b in string.ascii_lowercase]
    pairs = pairs[: LETTERS - len(signs)]
    tokens = [*signs, *(a + b for a, b in pairs)]
    marks = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": LETTERS + place, "content": token, "special": place < len(special), **marks}
            for place, token in enumerate([*special, *others])
        ],
        "normalizer": None,
        "pre_tokenizer": {**byte_level, "use_regex": True},
        "post_processor": None,
        "decoder": {**byte_level, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {token: number for number, token in enumerate(tokens)},
            "merges": [f"{a} {b}" for a, b in pairs],
        },
    }
