"""Log-probabilities of an answer's tokens, in the forms of the endpoints."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from genai_layer.serve.openai.answers import ScoredToken
from genai_layer.serve.openai.schemas.tokens import (
    Alternative,
    CompletionLogprobs,
    TokenLogprob,
)
from genai_layer.tokenizer import Tokenizer

_LEAST = -9999.0
"""Log-probability of an impossible token, as JSON has no infinity."""

_utf8 = codecs.getincrementaldecoder("utf-8")


def token_logprobs(
    tokens: Sequence[ScoredToken], most: int, tokenizer: Tokenizer
) -> list[TokenLogprob]:
    """Return the form of chats and responses.

    Args:
        tokens: tokens of an answer.
        most: number of alternatives.
        tokenizer: of the model.
    """
    found: list[TokenLogprob] = []
    for token in tokens:
        text, data = _text_of(token.id, tokenizer)
        others = [
            Alternative(token=other, logprob=max(value, _LEAST), bytes=raw)
            for other, raw, value in (
                (*_text_of(number, tokenizer), value) for number, value in token.alternatives[:most]
            )
        ]
        score = max(token.log_prob, _LEAST)
        found.append(TokenLogprob(token=text, logprob=score, bytes=data, top_logprobs=others))
    return found


def completion_logprobs(
    tokens: Sequence[ScoredToken], most: int, tokenizer: Tokenizer, offset: int
) -> CompletionLogprobs:
    """Return the form of completions.

    Args:
        tokens: tokens of a text, or of a part of it.
        most: number of alternatives.
        tokenizer: of the model.
        offset: number of characters before the tokens.
    """
    decoder = _utf8(errors="replace")
    offsets = [offset]
    for token in tokens:
        offsets.append(offsets[-1] + len(decoder.decode(tokenizer.bytes_of(token.id))))
    return CompletionLogprobs(
        tokens=[_text_of(token.id, tokenizer)[0] for token in tokens],
        token_logprobs=[max(one.log_prob, _LEAST) if one.predicted else None for one in tokens],
        top_logprobs=[_by_text(one, most, tokenizer) if one.predicted else None for one in tokens],
        text_offset=offsets[:-1],
    )


def _by_text(token: ScoredToken, most: int, tokenizer: Tokenizer) -> dict[str, float]:
    """Return a token and the alternatives at its place; of equal texts, the likeliest counts."""
    places = [*token.alternatives[:most], (token.id, token.log_prob)]
    places.sort(key=lambda one: one[1])
    return {_text_of(number, tokenizer)[0]: max(value, _LEAST) for number, value in places}


def _text_of(token: int, tokenizer: Tokenizer) -> tuple[str, list[int]]:
    """Return a token's text and its bytes; special tokens have their names."""
    data = tokenizer.bytes_of(token)
    return data.decode(errors="replace"), list(data)
