"""Generate: few tokens are read behind those that are stored, by the variant that holds them."""

from __future__ import annotations

import logging

from npuw_layer.backends.protocols import Array
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.kv.kv_strategy import KVStrategy
from npuw_layer.llm.plan.variants import select_generate_request
from npuw_layer.llm.request.lm_head import LMHead, Target
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.llm.request.parts import Parts
from npuw_layer.llm.request.submodel import Submodel
from npuw_layer.tensors.token_outputs import Gathered

_log = logging.getLogger(__name__)


class Generate:
    """The generate models as one conversation uses them.

    Args:
        compiled: all static models.
        cache: the conversation's K and V.
        parts: the conversation's parts of traits.
        gathered: takes rows of outputs beside the logits.
        head: makes logits of hidden states; None if each variant does.
    """

    def __init__(
        self,
        compiled: CompiledLLM,
        cache: KVStrategy,
        parts: Parts,
        gathered: Gathered,
        head: LMHead | None,
    ) -> None:
        self._plan = compiled.plan
        self._cache = cache
        self._gathered = gathered
        self._head = head
        self._variants = [
            Submodel(compiled, stage, cache, parts, head) for stage in self._plan.generate
        ]
        self.variant = 0
        """The number of the variant in use."""

    def prepare(self) -> None:
        """Do now what the first run of each variant would do."""
        for variant in self._variants:
            variant.prepare(None)

    def select(self) -> None:
        """Choose a variant that holds what is stored, and a response."""
        capacities, reserve = self._plan.capacities, self._plan.lengths.min_response
        stored = self._cache.rows.tokens
        self.variant = select_generate_request(capacities, stored, reserve)
        if capacities[self.variant] < stored + reserve:
            _log.warning("after %d tokens fewer than %d can be generated", stored, reserve)

    def has_room(self) -> bool:
        """Return whether more tokens fit; a full variant hands its rows over to the next."""
        while self._cache.rows.tokens >= self._plan.generate[self.variant].past:
            if self.variant + 1 == len(self._variants):
                return False
            self.variant += 1
        return True

    def run(self, tokens: NewTokens, target: Target | None) -> Array | None:
        """Read tokens behind those that are stored, and compute the logits of all of them.

        Args:
            tokens: as many as a variant takes at most.
            target: where the LM head is to write logits, if it makes just as many rows.

        Returns:
            Logits f32 [1, n, V]; None if they are where the target is.
        """
        self.has_room()
        variant, count = self._variants[self.variant], len(tokens)
        if self._head is None:
            variant.run(tokens, direct=False)
            logits = variant.output(count)
        else:
            program, logits = self._head.program(count, target)
            variant.run(tokens, direct=False, head=program)
        variant.gather(self._gathered)
        return logits
