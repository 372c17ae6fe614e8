"""Generate: few tokens after the stored ones, read by a variant with room for them."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from npuw_layer.backends.protocols import Array
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.kv.kv_strategy import KVStrategy
from npuw_layer.llm.plan.variants import select_generate_request
from npuw_layer.llm.request.lm_head import LMHead, LogitsTarget
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.llm.request.parts import ConversationParts
from npuw_layer.llm.request.submodel import Submodel
from npuw_layer.tensors.token_outputs import Gathered

_log = logging.getLogger(__name__)


class Generate:
    """Generate models of one conversation.

    Args:
        compiled: all static models.
        cache: the conversation's K and V.
        parts: the conversation's parts of traits.
        gathered: collects rows of outputs other than the logits.
        head: LM head; None if each variant has its own.
    """

    def __init__(
        self,
        compiled: CompiledLLM,
        cache: KVStrategy,
        parts: ConversationParts,
        gathered: Gathered,
        head: LMHead | None,
    ) -> None:
        self._plan = compiled.plan
        self._cache = cache
        self._gathered = gathered
        self._head = head
        made = [
            [Submodel(compiled, stage, cache, parts, head) for stage in stages]
            for stages in (self._plan.generate, self._plan.singles)
        ]
        self._variants, self._singles = made[0], made[1] or made[0]
        self.variant = 0
        """Index of the variant in use."""
        self.selected_for = 0
        """Tokens that the variant was chosen for; a larger one may have followed."""
        self.last: Submodel | None = None
        """Model that ran last."""

    def prepare(self) -> None:
        """Do the work of each variant's first run in advance."""
        for variant in {*self._variants, *self._singles}:
            variant.prepare(None)

    def select(self, coming: int = 0) -> None:
        """Choose a variant that holds the stored tokens, those of a coming step, and a response."""
        capacities, reserve = self._plan.capacities, self._plan.lengths.min_response
        tokens = self.selected_for = self._cache.rows.tokens + coming
        self.variant = select_generate_request(capacities, tokens, reserve)
        if capacities[self.variant] < tokens + reserve:
            _log.warning("after %d tokens, fewer than %d can be generated", tokens, reserve)

    def copy_from(self, other: Generate) -> None:
        """Go on with the variant of a copied conversation."""
        self.variant, self.selected_for = other.variant, other.selected_for

    def _with_room(self, models: Sequence[Submodel]) -> int:
        """Return the index of the model to run: that of the variant, or a larger one with room."""
        chosen, stored = self.variant, self._cache.rows.tokens
        while stored >= models[chosen].stage.past and chosen < len(models) - 1:
            chosen += 1
        return chosen

    def run(self, tokens: NewTokens, target: LogitsTarget | None) -> Array | None:
        """Read tokens after the stored ones, and compute the logits of all new tokens.

        Args:
            tokens: at most as many as a variant takes.
            target: device memory for the LM head's logits, if the head makes as many rows.

        Returns:
            Logits f32 [1, n, V]; None if they are in the target.
        """
        self.variant = self._with_room(self._singles)
        count = len(tokens)
        models = self._variants if count > 1 else self._singles
        variant = self.last = models[self._with_room(models)]
        if self._head is None:
            variant.run(tokens, direct=False)
            logits = variant.output(count)
        elif variant.feeds_head:
            program, logits = self._head.program(count, target)
            variant.run(tokens, direct=False, head=program)
        else:
            variant.run(tokens, direct=False)
            logits = self._head.logits(variant.output(count), target)
        variant.gather(self._gathered)
        return logits
