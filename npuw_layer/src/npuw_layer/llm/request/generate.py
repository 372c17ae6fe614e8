"""Generate: how few tokens are read behind those that are stored, and by which variant."""

from __future__ import annotations

import logging

from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.kv.kv_strategy import KVStrategy
from npuw_layer.llm.plan.variants import select_generate_request
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.llm.request.request_buffers import ProgramBuffers
from npuw_layer.llm.request.submodel import Submodel
from npuw_layer.llm.request.token_inputs import TokenInput
from npuw_layer.llm.request.token_outputs import Gathered

_log = logging.getLogger(__name__)


class Generate:
    """The generate models as one conversation uses them.

    Args:
        compiled: all static models.
        cache: the conversation's K and V.
        buffers: what models read besides tokens and their cache.
        gathered: takes what outputs beside the logits give.
    """

    def __init__(
        self,
        compiled: CompiledLLM,
        cache: KVStrategy,
        buffers: ProgramBuffers,
        gathered: Gathered,
    ) -> None:
        self._plan = compiled.plan
        self._cache = cache
        self._gathered = gathered
        device, bank, models = compiled.device, compiled.bank, compiled.models
        self._variants = [
            Submodel(device, stage, models[stage], cache, buffers, bank)
            for stage in self._plan.generate
        ]
        self.variant = 0
        """The number of the variant in use."""

    @property
    def token_inputs(self) -> tuple[TokenInput, ...]:
        """What the model wants of each new token."""
        return self._variants[0].token_inputs

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
        """Whether more tokens fit; the next larger variant takes over from one that is full."""
        while self._cache.rows.tokens >= self._plan.generate[self.variant].past:
            if self.variant + 1 == len(self._variants):
                return False
            self.variant += 1
        return True

    def run(self, tokens: NewTokens) -> Submodel:
        """Read tokens behind those that are stored; give the model that has them."""
        variant = self._variants[self.variant]
        variant.run(tokens, direct=False)
        variant.gather(self._gathered)
        return variant
