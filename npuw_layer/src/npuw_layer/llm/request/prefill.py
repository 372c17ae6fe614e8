"""Prefill: how a prompt is read, by which models, and from which cache."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass

from npuw_layer.errors import PromptTooLong
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.kv.kv_strategy import KVStrategy
from npuw_layer.llm.names import TOKEN_TYPES
from npuw_layer.llm.plan.stages import Stage, choose_prefill
from npuw_layer.llm.request.history import History
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.llm.request.request_buffers import ProgramBuffers
from npuw_layer.llm.request.submodel import Submodel
from npuw_layer.llm.request.token_outputs import Gathered
from npuw_layer.traits.lora.values import AdapterValues

Pieces = Generator[int, None, Submodel]
"""Breaks after each piece of a prompt but the last; then the model that read that."""


@dataclass(slots=True)
class Counts:
    """What the last prompt took, for people."""

    prefills: list[str]
    cached_tokens: int = 0


class Prefill:
    """The prefill models as one conversation uses them.

    Args:
        compiled: all static models.
        cache: the conversation's K and V.
        buffers: its adapters.
        gathered: takes what outputs beside the logits give.
        check_wanted: called before each run of a program; raises to end the inference there.
    """

    def __init__(
        self,
        compiled: CompiledLLM,
        cache: KVStrategy,
        buffers: ProgramBuffers,
        gathered: Gathered,
        check_wanted: Callable[[], None],
    ) -> None:
        self._compiled = compiled
        self._plan = compiled.plan
        self._cache = cache
        self._gathered = gathered
        self._check_wanted = check_wanted
        device, bank = compiled.device, compiled.bank
        self._models = {
            stage: Submodel(device, stage, compiled.models[stage], cache, buffers, bank)
            for stage in self._plan.prefill
        }
        self.counts = Counts([])
        self.last: Submodel | None = None
        """What read the last piece; its output is of that."""

    def prepare(self) -> None:
        """Do now what the first run of a whole chunk would do."""
        first = choose_prefill(self._plan.prefill, self._plan.prefill[-1].tokens, 0)
        assert first is not None  # without stored tokens every model fits
        self._models[first].prepare(0 if self._direct(first) else None)

    def read(self, tokens: NewTokens, history: History, adapters: AdapterValues) -> Pieces:
        """Read tokens behind those that are stored, chunk by chunk if need be.

        Args:
            tokens: with the mask and the positions of what is kept.
            history: grows by them.
            adapters: those in force.

        Yields:
            How many tokens were read since the last break.

        Returns:
            The model that has the last token.

        Raises:
            PromptTooLong: no model goes on behind what is stored.
        """
        done = self._restore(tokens, history, adapters)
        count, begin = len(tokens), self._cache.rows.tokens - done
        told = 0
        while done < count:
            self._check_wanted()
            stage = choose_prefill(self._plan.prefill, count - done, self._cache.rows.tokens)
            if stage is None or not self._cache.rows.plain:
                raise PromptTooLong(begin + count, self._plan.lengths.max_prompt)
            end = min(count, done + stage.tokens)
            last = self.last = self._models[stage]
            piece = tokens.part(done, end)
            last.run(piece, self._direct(stage))
            last.gather(self._gathered)
            history.extend(piece)
            self.counts.prefills.append(stage.name)
            if end < count:
                yield end - told
                told = end
            done = end
        assert self.last is not None  # at least one token is computed
        self._keep(tokens, begin, adapters)
        return self.last

    def _direct(self, stage: Stage) -> bool:
        """Whether a prefill model writes right into the cache, after what is stored now.

        Each place takes a program of its own, so only those behind whole chunks have one.
        """
        tokens = self._cache.rows.tokens
        return (
            self._compiled.options.writes_in_place
            and tokens % self._plan.lengths.prefill_input == 0
            and self._cache.together(tokens, stage.tokens)
        )

    def _restore(self, tokens: NewTokens, history: History, adapters: AdapterValues) -> int:
        """Take the beginning of a new conversation's prompt from the prefix cache."""
        prefixes = self._compiled.prefixes
        if prefixes is None or self._cache.rows.tokens or not _told_by_what_is_before(tokens):
            return 0
        blocks = prefixes.find(tokens.identity, self._computed_by(tokens, adapters))
        size = prefixes.block_size
        for block in blocks:
            self._cache.restore(block, size)
        done = len(blocks) * size
        history.extend(tokens.part(0, done))
        self.counts.cached_tokens = done
        return done

    def _keep(self, tokens: NewTokens, begin: int, adapters: AdapterValues) -> None:
        """Let the prefix cache keep a new conversation's prompt."""
        prefixes = self._compiled.prefixes
        if prefixes is not None and begin == 0 and _told_by_what_is_before(tokens):
            computed_by = self._computed_by(tokens, adapters)
            prefixes.store(tokens.identity, self._cache.between, computed_by)

    def _computed_by(self, tokens: NewTokens, adapters: AdapterValues) -> bytes:
        """What rows depend on beside tokens: adapters, and which factors turn keys."""
        long = next(iter(self._models.values())).long_from
        is_long = long is not None and tokens.reach >= long[1]
        return adapters.digest + (b"long" if is_long else b"")


def _told_by_what_is_before(tokens: NewTokens) -> bool:
    """Whether K and V of each token depend on it and those before alone, all of which count.

    Tokens of an image, where both ways are attended to, depend on later ones, too.
    """
    types = tokens.rows.get(TOKEN_TYPES)
    return bool(tokens.mask.all()) and (types is None or not types.any())
