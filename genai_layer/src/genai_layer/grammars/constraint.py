"""Constraint of one generation: the tokens that a grammar allows next."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from genai_layer.errors import ConfigError
from genai_layer.sampling.processors import Logits

if TYPE_CHECKING:
    from llguidance import LLMatcher


class GrammarConstraint:
    """Tokens that continue a text of a grammar; satisfies ``sampling.processors.Constraint``.

    A stop token is allowed when the grammar may end. After it, nothing is constrained (ignore_eos).

    Args:
        matcher: state of the grammar.
        stops: ids of the stop tokens.
        end: llguidance's own token for the end, which is not allowed unless it is a stop token.
    """

    def __init__(self, matcher: LLMatcher, stops: AbstractSet[int], end: int) -> None:
        self._matcher = matcher
        self._stops = np.array(sorted(stops), np.int64)
        self._end = end
        self._allowed: npt.NDArray[np.bool_] | None = None
        self._ended = False

    def prepare(self) -> None:
        """Compute the mask of the next token.

        Raises:
            ConfigError: the grammar is too complex.
        """
        if self._allowed is None and not self._ended:
            self._check()
            mask = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
            self._check()
            allowed = np.unpackbits(mask, bitorder="little").astype(bool)
            allowed[self._end] = False
            allowed[self._stops[self._stops < len(allowed)]] = self._matcher.is_accepting()
            self._allowed = allowed

    def process(self, logits: Logits) -> Logits:
        """Return new logits, -inf for tokens that the grammar forbids.

        Raises:
            ConfigError: the grammar is too complex, or no token is allowed.
        """
        self.prepare()
        if self._allowed is None:
            return logits
        allowed = np.zeros(len(logits), bool)
        known = self._allowed[: len(logits)]
        allowed[: len(known)] = known
        masked = np.where(allowed, logits, np.float32(-np.inf))
        if masked.max() == -np.inf:
            raise ConfigError(
                "structured_output_config: no token is allowed next; if the text is complete, "
                "lower min_new_tokens, else change the grammar"
            )
        return masked

    def advance(self, token: int) -> None:
        """Continue with a token that was allowed.

        Raises:
            ConfigError: the grammar is too complex.
        """
        self._allowed = None
        if token in self._stops:
            self._ended = True
        if not self._ended:
            self._matcher.consume_token(token)
            self._check()

    def fork(self) -> GrammarConstraint:
        """Return an independent constraint in the same state."""
        fork = GrammarConstraint(self._matcher.deep_copy(), {*self._stops.tolist()}, self._end)
        fork._allowed, fork._ended = self._allowed, self._ended
        return fork

    def _check(self) -> None:
        if self._matcher.is_error():
            reason = reason_of(self._matcher.get_error())
            remedy = _LENIENT if _UNSUPPORTED.search(reason) else "simplify or correct it"
            raise ConfigError(
                f"structured_output_config: llguidance rejects the grammar: {reason}; {remedy}"
            )


_UNSUPPORTED = re.compile("Unimplemented keys|Unknown format")
_LENIENT = (
    "leave them out, or have them ignored by lenient=True in StructuredOutputConfig, by --lenient "
    "of npu-serve"
)
_PLACE = re.compile(r"^(at )?\d+\(\d+\): ")
_LISTING = re.compile(r"^ *\d+ \| ", re.MULTILINE)
_MARKER = re.compile(r"^ *\^+$", re.MULTILINE)
_EMPTY = re.compile(r"Regex is empty:.*", re.DOTALL)
"""Error of texts that nothing matches, with their expressions: those of formats have thousands of
characters, which no user wrote.
"""


def reason_of(error: str) -> str:
    """Return the reason in llguidance's error, in one line.

    A place in llguidance's own grammar, which users do not see, and a listing of it are left out.
    """
    reason = _LISTING.split(_PLACE.sub("", error.strip()), maxsplit=1)[0]
    reason = _EMPTY.sub("no text has the pattern, the format and the length of a string", reason)
    return " ".join(_MARKER.sub("", reason).split())
