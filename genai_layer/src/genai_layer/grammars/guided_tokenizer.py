"""Tokenizer in llguidance's form, if the texts of its tokens can follow a grammar."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from genai_layer.errors import ModelError
from genai_layer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from llguidance import LLTokenizer


def check_tokenizer(tokenizer: Tokenizer) -> None:
    """Check that tokens have the same bytes wherever they stand in a text, but for a space.

    Raises:
        ModelError: tokens have no bytes of their own, or decoding joins them with spaces.
    """
    if not tokenizer.vocabulary.frame.plain:
        raise ModelError(
            "the tokenizer's decoder puts spaces between tokens, so the first token has another "
            "text than later ones; use a model with another tokenizer"
        )


def load_tokenizer(tokenizer: Tokenizer, stop: int) -> LLTokenizer:
    """Return llguidance's form of a tokenizer.

    Args:
        tokenizer: the tokenizer.
        stop: id of the token that ends a text.

    Raises:
        ModelError: see ``check_tokenizer``.
    """
    from llguidance import LLTokenizer, TokenizerWrapper

    return LLTokenizer(TokenizerWrapper(_Tokens(tokenizer, stop)))


class _Tokens:
    """Attributes that llguidance's TokenizerWrapper reads."""

    def __init__(self, tokenizer: Tokenizer, stop: int) -> None:
        check_tokenizer(tokenizer)
        self.eos_token_id, self.bos_token_id = stop, None
        self.special_token_ids = [*tokenizer.special_tokens]
        self.tokens = tokenizer.vocabulary.decoded_bytes
        self._tokenizer = tokenizer

    def __call__(self, text: str) -> list[int]:
        """Return a tokenization of a text."""
        data = self._tokenizer.encode(text, add_special_tokens=False).input_ids.data
        return cast("list[int]", data[0].tolist())
