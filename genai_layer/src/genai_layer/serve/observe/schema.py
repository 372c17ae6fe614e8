"""JSON of the observation routes; sizes are in bytes, lengths in tokens unless named otherwise."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class Shown(BaseModel):
    """Base of all parts, which are read from objects with the same attributes."""

    model_config = ConfigDict(from_attributes=True)


class KVState(Shown):
    """Lengths of the static models, and the size of a cache; see ``observation.KVShape``."""

    capacity: int
    max_prompt: int
    min_response: int
    variants: list[int]
    prefill_models: list[int]
    bytes_per_token: int
    layers: int


class MemoryPart(Shown):
    """Memory of one purpose; see ``observation.MemoryRange``."""

    name: str
    kind: Literal["weights", "kv_cache", "prefix_cache", "programs", "adapters"]
    bytes: int
    address: int | None
    slot: int | None


class SlotState(Shown):
    """A place and its request; see ``observation.ObservedPlace``."""

    slot: int
    request: str | None = None
    """Name of the request."""
    phase: Literal["free", "prefilling", "generating"]
    prompt_tokens: int
    stored_tokens: int
    cached_tokens: int
    variant: int | None
    variant_reason: str | None
    mask_ones: int
    copied_bytes: int
    prefill_chunks: list[int]


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
    """Last step that ran programs; see ``observation.ObservedStep``."""

    number: int
    kind: Literal["prefill", "generate", "both"]
    programs: list[str]
    read_tokens: int
    generated: int
    slots: int
    capacity: int
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
    last_step: StepState | None
    last_ended: SlotState | None
    """Slot of the request that ended last, as it was then."""
    speed: Speed


class ChunkPlan(Shown):
    """Tokens that one prefill run reads; see ``observation.PlannedChunk``."""

    tokens: int
    model: int


class VariantPlan(Shown):
    """A generate model; see ``observation.PlannedVariant``."""

    capacity: int
    chosen: bool
    utilisation: float
    waste: float


class Plan(Shown):
    """Programs and bytes of a prompt; see ``observation.PromptPlan``."""

    prompt_tokens: int
    max_prompt_len: int
    min_response_len: int
    capacity: int
    fits: bool
    reason: str
    chunks: list[ChunkPlan]
    variants: list[VariantPlan]
    needed: int
    kv_bytes: int
    bytes_used: int
    copy_bytes_here: int
    copy_bytes_npuw: int
    static_models: int
