"""Trait of LongRoPE: the host marks long inferences for programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from npuw_layer.backends.protocols import Array, Device, TensorInfo
from npuw_layer.errors import TensorError
from npuw_layer.llm.kv.kv_strategy import KVStrategy
from npuw_layer.llm.request.history import History
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.llm.trait import ConversationPart, Instance
from npuw_layer.traits.graph_trait import GraphTrait

LONG_ROPE = "npuw_longrope_"
"""Name prefix of the input i64 [sequences, 1]: 1 if a position of the inference is at least the
number in the name."""

END = "_end"
"""Ending of that name for a model without rotary factors from that number on."""


class _Reach(Instance, ConversationPart):
    """Input that marks long inferences; stateless, so all conversations share the instance.

    Args:
        name: name of the input.
        limit: position that makes an inference long.
    """

    one_row_for = ""

    def __init__(self, name: str, limit: int) -> None:
        self._name, self._limit = name, limit

    def part(self, device: Device, cache: KVStrategy, history: History) -> ConversationPart:
        """Return the instance itself."""
        return self

    def fill(self, inputs: Mapping[str, Array], tokens: NewTokens, past: int) -> None:
        """Set the input to 1 if the inference is long, else to 0."""
        inputs[self._name][...] = tokens.reach >= self._limit

    def prefix_key(self, tokens: NewTokens) -> bytes:
        """Return a key that separates rows with the factors of long inferences from others."""
        return b"long" if tokens.reach >= self._limit else b""


class _End(_Reach):
    """Input of a model without factors for long inferences, which are rejected."""

    def check(self, tokens: NewTokens, keep: int, prompt: bool) -> None:
        """Reject tokens at positions without factors.

        Raises:
            TensorError: there are such tokens.
        """
        if tokens.reach >= self._limit:
            raise TensorError(
                f"position_ids reach {tokens.reach}: from max_position_embeddings={self._limit} on "
                "the rotary factors (rope_type dynamic) change with each length; shorten the "
                "conversation"
            )


class LongRoPE(GraphTrait):
    """Rotary factors that depend on the largest position of an inference."""

    def recognise(self, inputs: Sequence[TensorInfo]) -> Instance | None:
        """Return the instance for a model with the input."""
        found = long_from(info.name for info in inputs)
        if found is None:
            return None
        return (_End if found[0].endswith(END) else _Reach)(*found)


def long_from(names: Iterable[str]) -> tuple[str, int] | None:
    """Return the input that marks long inferences, and the position that makes one long.

    Args:
        names: names of a static model's inputs.
    """
    for name in names:
        begin, mark, limit = name.partition(LONG_ROPE)
        limit = limit.removesuffix(END)
        if mark and not begin and limit.isdecimal():
            return name, int(limit)
    return None


TRAIT = LongRoPE("long_rope")
