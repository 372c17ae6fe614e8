"""Vocabulary of a tokenizer: its tokens, their bytes, and how much of a text one can be."""

from __future__ import annotations

from functools import cached_property

import tokenizers

from genai_layer.decoded_tokens import Frame, decoded_bytes, find_frame
from genai_layer.errors import PromptError
from genai_layer.token_lengths import least_tokens, longest_token
from genai_layer.token_names import token_bytes


class Vocabulary:
    """Tokens of a tokenizer.

    Args:
        tokenizer: the tokenizer.
    """

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        self._tokenizer = tokenizer

    @cached_property
    def size(self) -> int:
        """Number of token ids: the largest one plus 1."""
        known = self._tokenizer.get_vocab(with_added_tokens=True)
        return max(known.values(), default=0) + 1

    @property
    def ids(self) -> dict[bytes, int]:
        """Ids of all tokens, by the bytes of their names."""
        return {token: number for number, token in enumerate(token_bytes(self._tokenizer))}

    @property
    def texts(self) -> list[str]:
        """Texts of the names of all tokens, in the order of ids.

        Raises:
            PromptError: the bytes of a token are not UTF-8.
        """
        try:
            return [token.decode() for token in token_bytes(self._tokenizer)]
        except UnicodeDecodeError as error:
            raise PromptError(
                f"the token {error.object!r} is not UTF-8; use get_vocab, which returns bytes"
            ) from None

    @cached_property
    def frame(self) -> Frame:
        """Tokens that tokens are decoded between.

        Raises:
            ModelError: see ``find_frame``.
        """
        return find_frame(self._tokenizer)

    @cached_property
    def decoded_bytes(self) -> list[bytes]:
        """Bytes of each token within a text, in the order of ids.

        Raises:
            ModelError: see ``find_frame``.
        """
        return decoded_bytes(self._tokenizer, self.frame)

    def least_tokens(self, text: str) -> int:
        """Return a text's minimum number of tokens, without encoding it; 0 if unknown."""
        return least_tokens(text, self._longest)

    @cached_property
    def _longest(self) -> int | None:
        return longest_token(self._tokenizer)
