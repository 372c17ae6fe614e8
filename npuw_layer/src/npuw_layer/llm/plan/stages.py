"""The static models that one LLM is made of: which there are, and how long they are.

Prefill models differ in two ways: how many new tokens they take, and how many stored ones they
read. A short prompt takes a small one, and the last chunk of a long prompt, too (NPUW pays for a
whole chunk). With PYRAMID attention early chunks read little of the cache; with HFA and DYNAMIC so
do all models, each of which has one past, the longest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from npuw_layer.errors import OptionError
from npuw_layer.llm.kv.kv_layout import KVLayout
from npuw_layer.llm.language_kind import kind_of
from npuw_layer.llm.plan.lengths import Lengths, plan_lengths, round_generation_len
from npuw_layer.llm.plan.variants import given_ladder, ladder
from npuw_layer.options import Options

SMALLEST_PREFILL = 64
"""The fewest tokens that a prefill model takes, where prompts may be longer."""

ROPE_LEAD = 64
"""How far positions may be ahead of tokens where rotary angles come from tables; they need not
begin at 0 (those of Gemma 3 begin at 1)."""

_STEP = 4
"""How much larger the next prefill model is."""


class Kind(Enum):
    """What a static model is for."""

    PREFILL = "prefill"
    GENERATE = "generate"
    HEAD = "head"


@dataclass(frozen=True, slots=True)
class Stage:
    """One static model to make: new tokens it takes, and stored ones it reads."""

    kind: Kind
    tokens: int
    past: int
    slots: int = 1
    """Conversations that it takes tokens of, each with caches of its own."""

    @property
    def capacity(self) -> int:
        """Positions that its attention spans."""
        return self.past + self.tokens

    @property
    def name(self) -> str:
        """Tells it from the other models."""
        if self.kind is Kind.HEAD:
            return "lm_head" if self.tokens == 1 else f"lm_head_{self.tokens}"
        if self.kind is Kind.GENERATE:
            together = f"_slots_{self.slots}" if self.slots > 1 else ""
            return f"generate_{self.capacity}{together}"
        return f"prefill_{self.tokens}" + (f"_after_{self.past}" if self.past else "")


@dataclass(frozen=True, slots=True)
class Plan:
    """The lengths of an LLM and its static models."""

    lengths: Lengths
    prefill: tuple[Stage, ...]
    """Ascending in tokens, then in the past that they read."""
    generate: tuple[Stage, ...]
    """Ascending in capacity; none where texts are read alone."""
    heads: tuple[Stage, ...]
    """None if each model has its own; ascending in the hidden states that they take."""
    batched: tuple[Stage, ...] = ()
    """The generate models for several conversations at once (NPUW_LLM_BATCH_SLOTS)."""

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All models, in the order in which they are compiled."""
        return (*self.prefill, *self.generate, *self.heads, *self.batched)

    @property
    def slots(self) -> tuple[int, ...]:
        """For how many conversations at once there are models, ascending."""
        return tuple(sorted({stage.slots for stage in (*self.generate, *self.batched)}))

    @property
    def own_heads(self) -> tuple[Stage, ...]:
        """The heads that a single conversation needs; larger ones are for several at once."""
        most = self.generate[0].tokens if self.generate else 1
        return tuple(stage for stage in self.heads if stage.tokens <= most)

    @property
    def capacities(self) -> tuple[int, ...]:
        """Of the generate models, ascending."""
        return tuple(stage.capacity for stage in self.generate)


def lengths_of(options: Options) -> Lengths:
    """The lengths that options give an LLM.

    Raises:
        OptionError: they contradict one another.
    """
    own = kind_of(options).lengths(options)
    return own or plan_lengths(
        options.max_prompt_len,
        options.min_response_len if options.generates else 0,
        options.prefill_chunk_size,
        options.prefill_hint == "DYNAMIC",
    )


def kv_layout(options: Options) -> KVLayout:
    """How options let K and V lie.

    Raises:
        OptionError: there are to be blocks, but no chunks that say how long.
    """
    lengths = lengths_of(options)
    blocks = options.enable_block_based_kv_cache
    if blocks and lengths.chunk is None:
        raise OptionError(
            "NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE: a block is as long as a chunk, but prompts are "
            "read whole; set NPUW_LLM_PREFILL_CHUNK_SIZE below NPUW_LLM_MAX_PROMPT_LEN "
            f"({lengths.max_prompt}), and NPUW_LLM_PREFILL_HINT to DYNAMIC"
        )
    block = lengths.chunk if blocks else None
    return KVLayout(
        element=options.kv_element,
        room=(block or lengths.total) if options.transposes_values else None,
        block=block,
    )


def plan(options: Options) -> Plan:
    """Plan the static models.

    Raises:
        OptionError: lengths contradict one another.
    """
    lengths = lengths_of(options)
    kv_layout(options)  # what cannot be is refused before anything is compiled
    prefills = tuple(_prefills(options, lengths))
    if not options.generates:
        return Plan(lengths, prefills, (), (Stage(Kind.HEAD, 1, 0),) if options.cuts_head else ())
    tokens = round_generation_len(options.max_generation_token_len)
    sizes, slots = _sizes(options, lengths, tokens), sorted({*options.batch_slots} - {1})
    generate = [Stage(Kind.GENERATE, tokens, size - tokens) for size in sizes]
    _check_sinks(options, lengths, generate[-1])
    rows = sorted({1, tokens, *slots}) if options.cuts_head else []
    heads = [Stage(Kind.HEAD, count, 0) for count in rows]
    batched = [Stage(Kind.GENERATE, 1, size - 1, count) for count in slots for size in sizes]
    return Plan(lengths, prefills, tuple(generate), tuple(heads), tuple(batched))


def _check_sinks(options: Options, lengths: Lengths, largest: Stage) -> None:
    """See that first tokens which stay leave room for newer ones.

    Raises:
        OptionError: they do not.
    """
    if options.on_full == "ERROR":
        return
    # What slides takes new tokens in place of old ones; else these go before.
    newest = largest.tokens if options.on_full == "SLIDE" else 1
    most = min(lengths.max_prompt // 4, largest.past - newest)
    if options.sink_tokens > most:
        raise OptionError(
            f"NPUW_LLM_SINK_TOKENS: {options.sink_tokens} that stay leave too little room for "
            f"newer ones; take at most {max(most, 0)}, or raise NPUW_LLM_MAX_PROMPT_LEN and "
            "NPUW_LLM_MIN_RESPONSE_LEN"
        )


def rope_rows(stage: Stage, options: Options) -> int:
    """Positions that rotary angles are looked up for, where they come from tables.

    A text that is read alone may stand anywhere in a row of a batch, behind padding.
    """
    capacity = stage.capacity if options.generates else lengths_of(options).max_prompt
    return capacity + ROPE_LEAD


def _sizes(options: Options, lengths: Lengths, tokens: int) -> Sequence[int]:
    """The positions that generate models span; each has room for more than a step.

    Raises:
        OptionError: one has not.
    """
    if not options.generate_pyramid and options.generate_attention_hint != "PYRAMID":
        sizes: Sequence[int] = [lengths.total]
    elif options.pyramid_steps:
        sizes = given_ladder(options.pyramid_steps, lengths.total)
    else:
        sizes = [size for size in ladder(lengths.total) if size > tokens] or [lengths.total]
    if sizes[0] <= tokens:
        raise OptionError(
            f"NPUW_LLM_MAX_GENERATION_TOKEN_LEN: {tokens} tokens at a time, where a generate model "
            f"spans {sizes[0]} positions, these among them; take fewer, or raise "
            "NPUW_LLM_MAX_PROMPT_LEN or NPUW_LLM_GENERATE_PYRAMID_STEPS"
        )
    return sizes


def _prefills(options: Options, lengths: Lengths) -> Iterator[Stage]:
    """The prefill models, ascending in tokens, then in the past that they read."""
    largest, longest = lengths.prefill_input, lengths.max_prompt
    pyramid = options.prefill_attention_hint == "PYRAMID"
    for tokens in _widths(largest, options.prefill_pyramid, options.resumes_prefill):
        pasts = {0} if pyramid else set[int]()
        if pyramid and tokens == lengths.chunk:
            pasts |= set(_growing(tokens, longest - tokens))
        if tokens < largest and options.resumes_prefill:
            pasts.add(longest)  # it may begin anywhere
        elif lengths.chunk is not None:
            pasts.add(longest - largest)  # it begins behind whole chunks
        for past in sorted(pasts or {0}):
            yield Stage(Kind.PREFILL, tokens, past)


def _widths(largest: int, several: bool, resumes: bool) -> Sequence[int]:
    """Tokens of the prefill models, ascending: a quarter, and a quarter of that.

    To begin anywhere takes one that is smaller than the longest prompt.
    """
    widths = [largest]
    while several and widths[0] // _STEP >= SMALLEST_PREFILL and widths[0] % _STEP == 0:
        widths.insert(0, widths[0] // _STEP)
    if resumes and len(widths) == 1 and largest >= _STEP:
        widths.insert(0, largest // _STEP)
    return widths


def _growing(chunk: int, limit: int) -> Iterator[int]:
    """Pasts that double what attention spans."""
    past = chunk
    while past < limit:
        yield past
        past = 2 * past + chunk


def choose_prefill(stages: Sequence[Stage], tokens: int, stored: int) -> Stage | None:
    """Give the model to go on with.

    Args:
        stages: the prefill models, ascending.
        tokens: what is left of the prompt.
        stored: tokens in the cache.

    Returns:
        The smallest that takes all tokens, else the one that takes most; of these the one that
        reads least, and that all stored tokens fit. None if none does.
    """
    fitting = [stage for stage in stages if stage.past >= stored]
    whole = [stage for stage in fitting if stage.tokens >= tokens]
    if whole:
        return min(whole, key=lambda stage: (stage.tokens, stage.past))
    return max(fitting, key=lambda stage: (stage.tokens, -stage.past), default=None)
