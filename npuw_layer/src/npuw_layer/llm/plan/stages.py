"""Plan of the static models of one LLM: which exist, and their lengths.

Prefill models differ in the number of new tokens they take, and of stored tokens they read. A short
prompt uses a small model, and others are read in chunks by the models that cost least
(``chunks``); NPUW pads each to a complete chunk. With PYRAMID attention, models for early chunks
read little of the cache. With HFA and DYNAMIC all models read little; each has one past, the
longest.
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
"""Minimum tokens of a prefill model if prompts may be longer."""

SMALLEST_CHUNK = 16
"""The same minimum if models begin after any number of tokens, and prompts exceed SHORT_PROMPT."""

SHORT_PROMPT = 256
"""Past of small models for early chunks. Attention to so few tokens costs little, so the first
chunk needs no model without a past."""

ROPE_LEAD = 64
"""Limit of the lead of positions over tokens if rotary factors come from tables; positions need not
begin at 0 (those of Gemma 3 begin at 1)."""

SHARED_PROMPT = 32
"""Tokens of each conversation in a prefill model that several conversations share."""

_STEP = 4
"""Ratio of tokens from one prefill model to the next."""

_RESUMING = 2
"""Number of the smallest lengths of prefill models that begin after any number of tokens; a longer
run takes as long as the runs of these in its place."""


class StageKind(Enum):
    """Purpose of a static model."""

    PREFILL = "prefill"
    GENERATE = "generate"
    HEAD = "head"


@dataclass(frozen=True, slots=True)
class Stage:
    """A static model to compile: new tokens it takes, and stored tokens it reads."""

    kind: StageKind
    tokens: int
    past: int
    slots: int = 1
    """Number of conversations that the model serves together, each with its own caches."""

    @property
    def capacity(self) -> int:
        """Number of positions that attention spans."""
        return self.past + self.tokens

    @property
    def name(self) -> str:
        """Unique name of the stage in its plan."""
        if self.kind is StageKind.HEAD:
            return "lm_head" if self.tokens == 1 else f"lm_head_{self.tokens}"
        together = f"_slots_{self.slots}" if self.slots > 1 else ""
        if self.kind is StageKind.GENERATE and self.tokens == 1:
            return f"generate_{self.capacity}{together}"
        after = f"_after_{self.past}" if self.past else ""
        return f"{self.kind.value}_{self.tokens}{after}{together}"


@dataclass(frozen=True, slots=True)
class LLMPlan:
    """Lengths of an LLM, and its static models."""

    lengths: Lengths
    prefill: tuple[Stage, ...]
    """Ascending by tokens, then by past."""
    generate: tuple[Stage, ...]
    """Ascending by capacity; empty if the model only reads texts."""
    heads: tuple[Stage, ...]
    """Ascending by number of hidden states; empty if each model has its own head."""
    batched: tuple[Stage, ...] = ()
    """Generate models for several conversations together (NPUW_LLM_BATCH_SLOTS)."""
    singles: tuple[Stage, ...] = ()
    """Generate models of one token with the capacities of ``generate``; empty if those take one.
    They are those of a plan for steps of one token, so they compute equal values."""
    shared: tuple[Stage, ...] = ()
    """Prefill models that read a short prompt of each of several conversations, ascending by
    slots."""

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All models in the order of compilation."""
        return (
            *self.prefill,
            *self.generate,
            *self.heads,
            *self.batched,
            *self.singles,
            *self.shared,
        )

    @property
    def slots(self) -> tuple[int, ...]:
        """Numbers of conversations that batched models serve together, ascending."""
        return tuple(sorted({stage.slots for stage in (*self.generate, *self.batched)}))

    @property
    def resumes(self) -> bool:
        """True if prefill can read tokens after any number of stored ones."""
        return any(stage.past >= self.lengths.max_prompt for stage in self.prefill)

    @property
    def own_heads(self) -> tuple[Stage, ...]:
        """Heads for a single conversation; larger ones are for several together."""
        most = self.generate[0].tokens if self.generate else 1
        return tuple(stage for stage in self.heads if stage.tokens <= most)

    @property
    def capacities(self) -> tuple[int, ...]:
        """Capacities of the generate models, ascending."""
        return tuple(stage.capacity for stage in self.generate)


def lengths_of(options: Options) -> Lengths:
    """Return the lengths that options determine for an LLM.

    Raises:
        OptionError: options contradict one another.
    """
    own = kind_of(options).lengths(options)
    return own or plan_lengths(
        options.max_prompt_len,
        options.min_response_len if options.generates else 0,
        options.prefill_chunk_size,
        options.prefill_hint == "DYNAMIC",
    )


def kv_layout(options: Options) -> KVLayout:
    """Return the layout of K and V that options request.

    Raises:
        OptionError: blocks are requested, but prompts have no chunks to set the block length.
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


def plan(options: Options) -> LLMPlan:
    """Plan the static models.

    Raises:
        OptionError: lengths contradict one another.
    """
    lengths = lengths_of(options)
    kv_layout(options)  # reject impossible layouts before any compilation
    prefills = tuple(_prefills(options, lengths))
    if not options.generates:
        return LLMPlan(
            lengths, prefills, (), (Stage(StageKind.HEAD, 1, 0),) if options.cuts_head else ()
        )
    tokens = round_generation_len(options.max_generation_token_len)
    sizes, slots = _sizes(options, lengths, tokens), sorted({*options.batch_slots} - {1})
    generate = [Stage(StageKind.GENERATE, tokens, size - tokens) for size in sizes]
    _check_sinks(options, lengths, generate[-1])
    rows = sorted({1, tokens, *slots}) if options.cuts_head else []
    heads = [Stage(StageKind.HEAD, count, 0) for count in rows]
    batched = [Stage(StageKind.GENERATE, 1, size - 1, count) for count in slots for size in sizes]
    singles = [Stage(StageKind.GENERATE, 1, size - 1) for size in sizes if tokens > 1]
    # Isolated attention is a submodel that serves one conversation.
    sharing = slots if "prefill" not in options.isolated_attention else []
    shared = [Stage(StageKind.PREFILL, SHARED_PROMPT, 0, count) for count in sharing]
    return LLMPlan(lengths, prefills, *map(tuple, (generate, heads, batched, singles, shared)))


def _check_sinks(options: Options, lengths: Lengths, largest: Stage) -> None:
    """Check that sink tokens leave room for newer tokens.

    Raises:
        OptionError: sink tokens leave too little room.
    """
    if options.on_full == "ERROR":
        return
    # SLIDE needs rows to replace for a whole step; TRUNCATE drops old tokens beforehand.
    newest = largest.tokens if options.on_full == "SLIDE" else 1
    most = min(lengths.max_prompt // 4, largest.past - newest)
    if options.sink_tokens > most:
        raise OptionError(
            f"NPUW_LLM_SINK_TOKENS = {options.sink_tokens}: sink tokens leave too little room for "
            f"newer tokens; set it to at most {max(most, 0)}, or raise NPUW_LLM_MAX_PROMPT_LEN and "
            "NPUW_LLM_MIN_RESPONSE_LEN"
        )


def rope_rows(stage: Stage, options: Options) -> int:
    """Return the rows of the tables of rotary factors.

    A text that is only read may begin anywhere in a row of a batch, after padding.
    """
    capacity = stage.capacity if options.generates else lengths_of(options).max_prompt
    return capacity + ROPE_LEAD


def _sizes(options: Options, lengths: Lengths, tokens: int) -> Sequence[int]:
    """Return the capacities of generate models; each has room for more than a step.

    Raises:
        OptionError: a capacity is too small for a step.
    """
    if not options.generate_pyramid and options.generate_attention_hint != "PYRAMID":
        sizes: Sequence[int] = [lengths.total]
    elif options.pyramid_steps:
        sizes = given_ladder(options.pyramid_steps, lengths.total)
    else:
        sizes = [size for size in ladder(lengths.total) if size > tokens] or [lengths.total]
    if sizes[0] <= tokens:
        raise OptionError(
            f"NPUW_LLM_MAX_GENERATION_TOKEN_LEN = {tokens}: a generate model spans only {sizes[0]} "
            "positions, these tokens included; lower the option, or raise NPUW_LLM_MAX_PROMPT_LEN "
            "or NPUW_LLM_GENERATE_PYRAMID_STEPS"
        )
    return sizes


def _prefills(options: Options, lengths: Lengths) -> Iterator[Stage]:
    """Yield the prefill models, ascending by tokens, then by past."""
    largest, longest = lengths.prefill_input, lengths.max_prompt
    pyramid = options.prefill_attention_hint == "PYRAMID"
    worth = options.reads_chunks and longest > SMALLEST_PREFILL  # one run reads a shorter prompt
    resumes = options.resumes_prefill or worth
    smallest = SMALLEST_CHUNK if resumes and longest > SHORT_PROMPT else SMALLEST_PREFILL
    widths = _widths(largest, smallest if options.prefill_pyramid else largest, resumes)
    for tokens in widths:
        pasts = {0} if pyramid else set[int]()
        if pyramid and tokens == lengths.chunk:
            pasts |= set(_growing(tokens, longest - tokens))
        if resumes and tokens in widths[:_RESUMING] and tokens < largest:
            # Prefill may resume after any number of tokens.
            pasts = {longest, min(SHORT_PROMPT, longest)} if pyramid else {longest}
        elif lengths.chunk is not None:
            pasts.add(longest - largest)  # prefill begins after complete chunks
        for past in sorted(pasts or {0}):
            yield Stage(StageKind.PREFILL, tokens, past)


def _widths(largest: int, smallest: int, resumes: bool) -> Sequence[int]:
    """Return the tokens of the prefill models, ascending, each four times the one before.

    Resuming anywhere requires a model with fewer tokens than the longest prompt.
    """
    widths = [largest]
    while widths[0] // _STEP >= smallest and widths[0] % _STEP == 0:
        widths.insert(0, widths[0] // _STEP)
    if resumes and len(widths) == 1 and largest >= _STEP:
        widths.insert(0, largest // _STEP)
    return widths


def _growing(chunk: int, limit: int) -> Iterator[int]:
    """Yield pasts that double the span of attention each time."""
    past = chunk
    while past < limit:
        yield past
        past = 2 * past + chunk
