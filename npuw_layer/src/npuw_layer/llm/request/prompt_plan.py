"""Plan of a prompt: what would run for so many tokens, by the rules of a conversation.

The static models come from ``plan``, the chunks from ``chunks``, the variant from
``select_generate_request``: a conversation calls the same functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npuw_layer.backends.arena import ELEMENT_TYPES
from npuw_layer.errors import PromptTooLong, TensorError
from npuw_layer.llm.kv.row_layouts import CacheSize
from npuw_layer.llm.plan.chunks import chunks
from npuw_layer.llm.plan.stages import LLMPlan, kv_layout, plan
from npuw_layer.llm.plan.variants import select_generate_request, selection_reason
from npuw_layer.llm.request.admission import Admission
from npuw_layer.options import Options, parse_options

_NPUW_ELEMENT = "f16"
"""Element type of the real NPUW's K and V without KV_CACHE_PRECISION
(docs/reference/npuw.md#kv-types)."""

_SURPLUS = {
    "TRUNCATE": "the middle {} of {} tokens are dropped",
    "SLIDE": "generate steps read the last {} of {} tokens",
}
"""Fate of the tokens of a prompt that prefill has no room for, by NPUW_LLM_ON_FULL."""


@dataclass(frozen=True, slots=True)
class PlannedChunk:
    """Tokens that one prefill run reads."""

    tokens: int
    model: int
    """Tokens that the prefill model takes."""


@dataclass(frozen=True, slots=True)
class PlannedVariant:
    """A generate variant, and how much of it the prompt and a response need."""

    capacity: int
    chosen: bool
    utilisation: float
    """Needed positions as a share of the capacity, at most 1."""
    waste: float
    """The rest: 1 - utilisation."""


@dataclass(frozen=True, slots=True)
class PromptPlan:
    """Static models that a prompt of a new conversation would use, and the bytes of its K and V."""

    prompt_tokens: int
    max_prompt_len: int
    min_response_len: int
    capacity: int
    """Rows of the cache: the longest prompt and the response after it."""
    fits: bool
    reason: str
    """Reason for the variant; if the prompt does not fit, the problem and the remedy."""
    chunks: Sequence[PlannedChunk]
    """Runs of prefill models in order; none for one token, which a generate model reads."""
    variants: Sequence[PlannedVariant]
    needed: int
    """Positions that the variant is chosen for: stored tokens, and the reserved response."""
    kv_bytes: int
    """Bytes of a full cache."""
    bytes_used: int
    """Bytes of the prompt's rows."""
    copy_bytes_here: int
    """Bytes of the prompt's rows that are copied to where generate reads them."""
    copy_bytes_npuw: int
    """Bytes that the real NPUW copies at the first generate step: all rows of the prompt
    (docs/reference/npuw.md#kv-copies)."""
    static_models: int


def with_lengths(
    options: Options, max_prompt_len: int | None, min_response_len: int | None
) -> Options:
    """Return options with other lengths.

    Raises:
        OptionError: a length is out of range.
    """
    given = {
        "NPUW_LLM_MAX_PROMPT_LEN": max_prompt_len,
        "NPUW_LLM_MIN_RESPONSE_LEN": min_response_len,
    }
    checked = parse_options({name: value for name, value in given.items() if value is not None})
    changed = {name: getattr(checked, name) for name in checked.model_fields_set}
    return options.model_copy(update=changed)


def plan_prompt(options: Options, size: CacheSize, tokens: int) -> PromptPlan:
    """Plan a prompt of a new conversation, without the prefix cache.

    Args:
        options: options of the model.
        size: size of the model's K and V.
        tokens: tokens of the prompt.

    Raises:
        TensorError: there is no token.
        OptionError: lengths contradict one another.
    """
    if tokens < 1:
        raise TensorError(f"a prompt of {tokens} tokens: pass a number of at least 1")
    planned = plan(options)
    lengths, longest = planned.lengths, Admission(options, planned, ()).longest_prompt
    surplus = max(tokens - longest, 0)
    fits = not surplus or options.on_full != "ERROR"
    stored = min(tokens, planned.generate[-1].past if options.on_full == "SLIDE" else longest)
    read = [*chunks(planned, options, min(tokens, longest), 0)] if fits and tokens > 1 else []
    reason = selection_reason(planned.capacities, stored, lengths.min_response)
    if surplus and fits:
        reason = f"{_SURPLUS[options.on_full].format(surplus, tokens)}; {reason}"
    copied = sum(chunk.tokens for chunk in read if not chunk.in_place)
    copied += surplus if options.on_full == "SLIDE" else 0  # a step's row is always copied
    used = sum(chunk.tokens for chunk in read)
    return PromptPlan(
        prompt_tokens=tokens,
        max_prompt_len=lengths.max_prompt,
        min_response_len=lengths.min_response,
        capacity=lengths.total,
        fits=fits,
        reason=reason if fits else str(PromptTooLong(tokens, longest)),
        chunks=[PlannedChunk(chunk.tokens, chunk.stage.tokens) for chunk in read],
        variants=_variants(planned, stored, fits),
        needed=stored + lengths.min_response,
        kv_bytes=size.nbytes(lengths.total, kv_layout(options).block),
        bytes_used=(stored if fits else 0) * size.row_bytes,
        copy_bytes_here=copied * size.row_bytes,
        copy_bytes_npuw=used * _npuw_row_bytes(options, size),
        static_models=len(planned.stages),
    )


def _variants(planned: LLMPlan, stored: int, fits: bool) -> list[PlannedVariant]:
    reserve = planned.lengths.min_response
    chosen = select_generate_request(planned.capacities, stored, reserve)
    found: list[PlannedVariant] = []
    for index, capacity in enumerate(planned.capacities):
        share = min(1.0, (stored + reserve) / capacity)
        found.append(PlannedVariant(capacity, fits and index == chosen, share, 1 - share))
    return found


def _npuw_row_bytes(options: Options, size: CacheSize) -> int:
    """Return the bytes of a token's K and V in the real NPUW."""
    if options.kv_element:
        return size.row_bytes
    return size.values * ELEMENT_TYPES[_NPUW_ELEMENT].itemsize
