"""Prefill: reads a prompt in chunks by fitting models, or takes rows from the prefix cache."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass

from npuw_layer.errors import PromptTooLong
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.kv.kv_strategy import KVStrategy
from npuw_layer.llm.plan.chunks import Chunk, chunks
from npuw_layer.llm.request.history import History
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.llm.request.parts import ConversationParts
from npuw_layer.llm.request.submodel import Submodel
from npuw_layer.tensors.token_outputs import Gathered

Chunks = Generator[int, None, Submodel]
"""Generator that yields after each chunk of a prompt but the last; returns the last one's model."""


@dataclass(slots=True)
class Counts:
    """Chunks read, and tokens taken from the prefix cache, for the last prompt."""

    chunks: list[Chunk]
    cached_tokens: int = 0

    @property
    def prefills(self) -> list[str]:
        """Names of the static models that ran, in order."""
        return [chunk.stage.name for chunk in self.chunks]

    @property
    def padding(self) -> int:
        """Number of rows that the models computed without tokens."""
        return sum(chunk.padding for chunk in self.chunks)


class Prefill:
    """Prefill models of one conversation.

    Args:
        compiled: all static models.
        cache: the conversation's K and V.
        parts: the conversation's parts of traits.
        gathered: collects rows of outputs other than the logits.
        check_wanted: called before each run of a program; raises to end the inference there.
    """

    def __init__(
        self,
        compiled: CompiledLLM,
        cache: KVStrategy,
        parts: ConversationParts,
        gathered: Gathered,
        check_wanted: Callable[[], None],
    ) -> None:
        self._compiled = compiled
        self._plan = compiled.plan
        self._cache = cache
        self._parts = parts
        self._gathered = gathered
        self._check_wanted = check_wanted
        self._models = {
            stage: Submodel(compiled, stage, cache, parts) for stage in self._plan.prefill
        }
        self.counts = Counts([])
        self.unfinished = False
        """True if a prompt is partly read: in progress, or given up."""
        self.last: Submodel | None = None
        """Model that read the last chunk, with its output."""

    def prepare(self) -> None:
        """Do the work of a complete chunk's first run in advance."""
        complete = self._plan.prefill[-1].tokens
        first = chunks(self._plan, self._compiled.options, complete, 0)[0]
        self._models[first.stage].prepare(0 if first.in_place else None)

    def forget(self) -> None:
        """Begin a prompt: forget the counts of the last one."""
        self.counts, self.unfinished = Counts([]), False

    def copy_from(self, other: Prefill) -> None:
        """Go on where another conversation's prefill is."""
        chunks, cached = other.counts.chunks, other.counts.cached_tokens
        self.counts, self.unfinished = Counts([*chunks], cached), other.unfinished

    def read(self, tokens: NewTokens, history: History) -> Chunks:
        """Read tokens after the stored ones, in chunks if necessary.

        Args:
            tokens: tokens with mask and positions in the count of kept tokens.
            history: history to extend by the tokens.

        Yields:
            The number of tokens read since the last yield.

        Returns:
            The model that read the last token.

        Raises:
            PromptTooLong: no model can continue after the stored tokens.
        """
        self.unfinished = True
        done = self._restore(tokens, history)
        count, begin = len(tokens), self._cache.rows.tokens - done
        reported = 0
        left = count - done if self._cache.rows.plain else 0
        for chunk in chunks(self._plan, self._compiled.options, left, self._cache.rows.tokens):
            self._check_wanted()
            end = done + chunk.tokens
            last = self.last = self._models[chunk.stage]
            piece = tokens.part(done, end)
            last.run(piece, chunk.in_place)
            last.gather(self._gathered)
            history.extend(piece)
            self.counts.chunks.append(chunk)
            if end < count:
                yield end - reported
                reported = end
            done = end
        if done < count:
            raise PromptTooLong(begin + count, self._plan.lengths.max_prompt)
        assert self.last is not None  # at least one token is computed
        self.unfinished = False
        self._keep(tokens, begin)
        return self.last

    def _restore(self, tokens: NewTokens, history: History) -> int:
        """Restore the beginning of a new conversation's prompt from the prefix cache."""
        prefixes, key = self._compiled.prefixes, self._prefix_key(tokens)
        if prefixes is None or self._cache.rows.tokens or key is None:
            return 0
        blocks = prefixes.find(tokens.identity, key)
        size = prefixes.block_size
        for block in blocks:
            self._cache.restore(block, size)
        done = len(blocks) * size
        history.extend(tokens.part(0, done))
        self.counts.cached_tokens = done
        return done

    def _keep(self, tokens: NewTokens, begin: int) -> None:
        """Store a new conversation's prompt in the prefix cache."""
        prefixes, key = self._compiled.prefixes, self._prefix_key(tokens)
        if prefixes is not None and begin == 0 and key is not None:
            prefixes.store(tokens.identity, self._cache.between, key)

    def _prefix_key(self, tokens: NewTokens) -> bytes | None:
        """Return a key of all that rows depend on besides tokens.

        None without a prefix cache, if rows depend on later tokens, or if some tokens are masked
        out.
        """
        if self._compiled.prefixes is None:
            return None
        return self._parts.prefix_key(tokens) if tokens.mask.all() else None
