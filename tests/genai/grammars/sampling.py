"""Random texts of a JSON schema's grammar, and whether the grammar accepts a text."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any

import numpy as np
from llguidance import LLMatcher, LLParserLimits, LLTokenizer

from genai_layer import StructuredOutputConfig
from genai_layer.grammars.compiler import grammar_of
from genai_layer.testing.toy import EOS, ids_of, make_tokenizer

CLOSING = ids_of('"]},:')
_LIMITS = LLParserLimits(step_max_items=2_000_000, verbose_errors=False)


@cache
def tokenizer() -> LLTokenizer:
    return LLTokenizer(make_tokenizer().to_str(), eos_token=EOS)


def matcher_of(schema: Any, lenient: bool = False) -> LLMatcher:
    """Return the state of a schema's grammar; it may have an error."""
    config = StructuredOutputConfig(json_schema=json.dumps(schema), lenient=lenient)
    return LLMatcher(tokenizer(), grammar_of(config), log_level=0, limits=_LIMITS)


def accepts(matcher: LLMatcher, text: str) -> bool:
    """Return whether a grammar, which stays as it is, has a text."""
    ids, copy = ids_of(text), matcher.deep_copy()
    if copy.validate_tokens(ids) != len(ids):
        return False
    return copy.consume_tokens(ids) and copy.is_accepting()


def sample(matcher: LLMatcher, seed: int, length: int = 40) -> str:
    """Return a random text of a grammar; after so many tokens, it is closed where it can be."""
    draw, copy, ids = random.Random(seed), matcher.deep_copy(), list[int]()
    while True:
        mask = np.frombuffer(copy.compute_bitmask(), np.uint8)
        assert not copy.is_error(), copy.get_error()
        allowed = {*np.unpackbits(mask, bitorder="little").nonzero()[0].tolist()} - {EOS}
        ends = copy.is_accepting() and (len(ids) > length or draw.random() < 0.2)
        if ends or not allowed:
            return str(make_tokenizer().decode(ids))
        closing = [token for token in CLOSING if token in allowed]
        close = closing and (len(ids) > length or draw.random() < 0.1)
        ids.append(draw.choice(closing if close else sorted(allowed)))
        assert len(ids) < 2000
        assert copy.consume_token(ids[-1])
