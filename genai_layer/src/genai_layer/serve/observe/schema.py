"""JSON of the observation routes; sizes are in bytes, lengths in tokens unless named otherwise.

The parts that derive from ``Shown`` are also what a runtime shows: ``observation`` refers to them.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class Shown(BaseModel):
    """Base of the parts that are read from objects with the same attributes."""

    model_config = ConfigDict(from_attributes=True)


class KVState(Shown):
    """Lengths of the static models, and the size of a cache."""

    capacity: int
    """Rows of a cache: the longest prompt and the response after it."""
    max_prompt: int
    """Tokens of the longest prompt."""
    min_response: int
    """Tokens that can be generated after the longest prompt."""
    variants: list[int]
    """Positions that the generate models span, ascending."""
    prefill_models: list[int]
    """Tokens that the prefill models take, ascending."""
    bytes_per_token: int
    """Bytes of K and V of a token in all layers."""
    layers: int
    """Layers that have K and V."""


class MemoryPart(Shown):
    """Memory of one purpose."""

    name: str
    """Name of the content."""
    kind: Literal["weights", "kv_cache", "prefix_cache", "programs", "adapters"]
    bytes: int
    address: int | None
    """Address on the device; None for host memory, or if unknown."""
    slot: int | None
    """Place that owns the memory; None if all share it."""


class SlotState(Shown):
    """Place of a conversation and its request; numbers are 0 if the place is free."""

    slot: int
    request: str | None = None
    """Name of the request."""
    phase: Literal["free", "prefilling", "generating"]
    prompt_tokens: int
    """Tokens up to the end of the last prompt."""
    stored_tokens: int
    """Rows in use, which is where the next token's row is written."""
    cached_tokens: int
    """Tokens of the prompt that came from the prefix cache."""
    variant: int | None
    """Positions of the generate model; None before the first."""
    variant_reason: str | None
    """Reason for the variant, for users."""
    mask_ones: int
    """Stored rows that the mask shows to the next token."""
    copied_bytes: int
    """Bytes of the prompt's rows that were copied after prefill."""
    prefill_chunks: list[int]
    """Tokens of each chunk that was read."""


class EngineSpan(BaseModel):
    """Time in which an engine is busy without a visible gap."""

    begin_us: float
    end_us: float
    name: str
    """Operation of the model that takes most of the time."""


class EngineTime(BaseModel):
    """Work of one kind of engine in a step."""

    engine: str
    busy_us: float
    """Time in which at least one engine of the kind is busy."""
    spans: list[EngineSpan]


class StepState(Shown):
    """Last step that ran programs."""

    number: int
    """Number of the step, from 1."""
    kind: Literal["prefill", "generate", "both"]
    programs: list[str]
    """Names of the programs, in order."""
    read_tokens: int
    """Prompt tokens that the step read."""
    generated: int
    """Conversations of which the step ran one token."""
    slots: int
    """Slots of the generate model; 0 if none ran."""
    capacity: int
    """Positions of the generate model; 0 if conversations ran one by one."""
    device_us: float | None = None
    """Modelled time of the programs on the device; None if the device has no timelines."""
    host_ms: float
    """Measured time of the step on the host."""
    engines: list[EngineTime] = []


class Speed(BaseModel):
    """Speed of the last completed request; None before the first."""

    ttft_ms: float | None = None
    tpot_ms: float | None = None
    tokens_per_s: float | None = None


class State(BaseModel):
    """State of a loaded language model."""

    model: str
    device: str
    observable: bool
    """False if the runtime shows nothing; then kv, memory and last_step are null."""
    kv: KVState | None
    memory: list[MemoryPart] | None
    slots: list[SlotState]
    queue: int
    """Requests that wait for a place."""
    queue_limit: int
    max_tokens: int
    """Tokens that an answer may have."""
    last_step: StepState | None
    last_ended: SlotState | None
    """Slot of the request that ended last, as it was then."""
    speed: Speed


class ChunkPlan(Shown):
    """Tokens of a prompt that one prefill run reads."""

    tokens: int
    model: int
    """Tokens that the prefill model takes."""


class VariantPlan(Shown):
    """A generate model, and how much of it a prompt and a response need."""

    capacity: int
    """Positions that it spans."""
    chosen: bool
    """True if it would run."""
    utilisation: float
    """Needed positions as a share of the capacity, at most 1."""
    waste: float
    """The rest: 1 - utilisation."""


class Plan(Shown):
    """Programs that a prompt of a new conversation would use, and the bytes of its K and V."""

    prompt_tokens: int
    max_prompt_len: int
    """Tokens of the longest prompt."""
    min_response_len: int
    """Tokens that can be generated after the longest prompt."""
    capacity: int
    """Rows of the cache."""
    fits: bool
    """True if the prompt can be read."""
    reason: str
    """Reason for the variant; if the prompt does not fit, the problem and remedy."""
    chunks: list[ChunkPlan]
    """Prefill runs, in order."""
    variants: list[VariantPlan]
    """Generate models, ascending."""
    needed: int
    """Positions that the variant is chosen for."""
    kv_bytes: int
    """Bytes of a full cache."""
    bytes_used: int
    """Bytes of the prompt's rows."""
    copy_bytes_here: int
    """Bytes of the prompt's rows that are copied between the models."""
    copy_bytes_npuw: int
    """Bytes that the real NPUW copies between the models."""
    static_models: int
    """Number of programs."""
