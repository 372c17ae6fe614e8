"""Options of language models: lengths, prefill, generate, experts, KV cache."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from npuw_layer.options.base import MANY, OURS, Only, OptionGroup


class LengthOptions(OptionGroup):
    """Lengths of the static models."""

    title: ClassVar[str] = "LLM lengths"

    max_prompt_len: int = Field(1024, alias="NPUW_LLM_MAX_PROMPT_LEN", ge=1, le=MANY)
    """The longest prompt, in tokens; rounded up to 64 and to the chunk."""
    min_response_len: int = Field(128, alias="NPUW_LLM_MIN_RESPONSE_LEN", ge=0, le=MANY)
    """Minimum tokens that can be generated after a full prompt; rounded up to 64."""
    max_generation_token_len: int = Field(
        1, alias="NPUW_LLM_MAX_GENERATION_TOKEN_LEN", ge=1, le=1024
    )
    """Tokens that one generate call accepts, for candidates of speculative decoding; more than 1 is
    rounded up to 8. Generate models then span more positions."""
    batch_dim: int = Field(0, alias="NPUW_LLM_BATCH_DIM", ge=0, le=3)
    """The axis of the model's K and V caches that counts sequences; if unset, the model determines
    it."""
    seq_len_dim: int = Field(2, alias="NPUW_LLM_SEQ_LEN_DIM", ge=0, le=3)
    """The axis that counts tokens; if unset, the model determines it."""
    max_lora_rank: int = Field(32, alias="NPUW_LLM_MAX_LORA_RANK", ge=1, le=MANY)
    """The largest rank of LoRA adapters, and so of the adapter inputs of a model with adapter
    states. Smaller ranks are padded with zeros, which cost as much as ranks in use."""
    on_full: Literal["ERROR", "TRUNCATE", "SLIDE"] = Field(
        "ERROR", alias="NPUW_LLM_ON_FULL", json_schema_extra=OURS
    )
    """Behaviour of a full cache: ERROR ends the conversation, and rejects prompts above
    NPUW_LLM_MAX_PROMPT_LEN. TRUNCATE drops the middle of the tokens, and reads the first and the
    newest ones, half a prompt, again; of a longer prompt it drops the middle. It sees tokens, no
    turns: genai_layer leaves out whole turns before that. SLIDE replaces the oldest tokens except
    the first ones at each step, and reads nothing again. Prompts and turns may be of any length:
    prefill reads as many tokens as it has room for, and generate steps read the others, one by one
    or NPUW_LLM_MAX_GENERATION_TOKEN_LEN at a time. Each token attends to the first ones, and to as
    many of the newest as the cache holds; K rows keep their positions."""
    sink_tokens: int = Field(4, alias="NPUW_LLM_SINK_TOKENS", ge=0, le=MANY, json_schema_extra=OURS)
    """First tokens that SLIDE and TRUNCATE keep, at most a quarter of the longest prompt: they act
    as attention sinks."""


PROMPT_GRAIN = 64
"""Longest prompts are rounded up to multiples of this number of tokens."""

AttentionHint = Literal["STATIC", "DYNAMIC", "PYRAMID", "HFA"]

ISOLATED = ("HFA", "DYNAMIC")
"""Attention hints that make each attention a separate submodel."""

MoeHint = Literal["DENSE", "HOST_ROUTED", "DEVICE_ROUTED"]
"""Ways to run experts; NPUW's default is HOST_ROUTED."""


class PrefillOptions(OptionGroup):
    """The models that read prompts."""

    title: ClassVar[str] = "Prefill"

    prefill_hint: Literal["DYNAMIC", "STATIC"] = Field("DYNAMIC", alias="NPUW_LLM_PREFILL_HINT")
    """DYNAMIC reads long prompts in chunks, STATIC reads a prompt in one inference."""
    prefill_chunk_size: int = Field(1024, alias="NPUW_LLM_PREFILL_CHUNK_SIZE", ge=0)
    """Tokens of a chunk, a power of two; 0 reads a prompt in one inference."""
    prefill_pyramid: bool = Field(True, alias="NPUW_LLM_PREFILL_PYRAMID", json_schema_extra=OURS)
    """Compile prefill models of several lengths, of which a prompt runs the sequence that costs
    least. If the hint is DYNAMIC, and chunks have a length, the smaller ones also begin after any
    number of stored tokens."""
    prefill_attention_hint: AttentionHint = Field(
        "PYRAMID", alias="NPUW_LLM_PREFILL_ATTENTION_HINT"
    )
    """PYRAMID attends to positions up to the chunk's end, STATIC to all positions. HFA (host flash
    attention) and DYNAMIC run each attention as a separate submodel, if prompts are read in chunks:
    HFA in tiles of a chunk's length, of which the host runs those with visible positions; DYNAMIC
    on the host, over exactly the stored positions (NPUW_DEVICES must have CPU). Both need
    NPUW_WEIGHTS_OFFLOAD = NO, and keep V untransposed."""
    prefill_moe_hint: Annotated[
        MoeHint,
        Only(
            ("DENSE", "HOST_ROUTED"),
            "in prefill only the host can gather an expert's tokens; use HOST_ROUTED",
        ),
    ] = Field("DENSE", alias="NPUW_LLM_PREFILL_MOE_HINT")
    """Experts of a mixture that run on a prompt's tokens: DENSE, all of them, in one program;
    HOST_ROUTED, those that the router chose, each run by the host. No effect on models without
    experts."""
    enable_prefix_caching: bool = Field(False, alias="NPUW_LLM_ENABLE_PREFIX_CACHING")
    """Keep K and V of prompts that begin a conversation, in blocks of tokens, so that later prompts
    do not compute a common prefix again."""
    prefix_caching_block_size: int = Field(
        256, alias="NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE", ge=1, le=1 << 20
    )
    """Tokens of a prefix-cache block."""
    prefix_caching_max_num_blocks: int = Field(
        128, alias="NPUW_LLM_PREFIX_CACHING_MAX_NUM_BLOCKS", ge=1, le=1 << 32
    )
    """Maximum number of cached blocks; the least recently used are evicted first."""
    prefix_caching_max_bytes: int = Field(
        1 << 30,
        alias="NPUW_LLM_PREFIX_CACHING_MAX_BYTES",
        ge=0,
        le=1 << 50,
        json_schema_extra=OURS,
    )
    """Maximum bytes of all cached blocks; 0 sets no limit except their number."""
    enable_continuous_prefill: bool = Field(False, alias="NPUW_LLM_ENABLE_CONTINUOUS_PREFILL")
    """Let the caller set the variable npuw_stored_tokens_state to the number of tokens to keep, as
    in NPUW, and read back the granted number (the same, unless the cache was full); the next
    inference must then continue there. Without a proposal, position_ids set the position. By
    default prefill reads several tokens that continue a conversation either way; if prompts are
    read whole, only this option and prefix caching compile the models for that."""


class GenerateOptions(OptionGroup):
    """The models that add a token to a conversation."""

    title: ClassVar[str] = "Generate"

    generate_pyramid: bool = Field(True, alias="NPUW_LLM_GENERATE_PYRAMID")
    """Compile generate variants of several capacities, so that short conversations run faster."""
    pyramid_steps: tuple[int, ...] = Field(
        (), alias="NPUW_LLM_GENERATE_PYRAMID_STEPS", json_schema_extra=OURS
    )
    """The variants' capacities, ascending, e.g. "256,1152"; empty doubles from 256."""
    batch_slots: tuple[Annotated[int, Field(ge=1, le=64)], ...] = Field(
        (1,), alias="NPUW_LLM_BATCH_SLOTS", json_schema_extra=OURS
    )
    """Conversations that generate in one inference, e.g. "1,4,8". For each number above 1 the
    generate models are compiled again, and a prefill model that reads a short prompt of each; a
    step runs the smallest model with enough slots."""
    eagle: bool = Field(False, alias="NPUW_EAGLE")
    """The model is the target or the draft of speculative decoding by Eagle 3: it returns
    last_hidden_state of each new token in addition to logits, and a draft accepts hidden_states.
    With eagle_tree_mask it reads trees of candidates, and npuw_eagle3_sampling_result selects those
    to keep. The model's ports also show this; YES rejects a model without such an output."""
    generate_hint: Literal["FAST_COMPILE", "BEST_PERF"] = Field(
        "FAST_COMPILE", alias="NPUW_LLM_GENERATE_HINT"
    )
    """FAST_COMPILE compiles equal layers of the generate models once; BEST_PERF compiles each
    separately, which takes longer and may overlap layers more. NPUW_FOLD overrides the hint."""
    generate_attention_hint: AttentionHint = Field(
        "STATIC", alias="NPUW_LLM_GENERATE_ATTENTION_HINT"
    )
    """STATIC attends to all positions of a variant; PYRAMID compiles variants, whatever
    NPUW_LLM_GENERATE_PYRAMID is. HFA and DYNAMIC are as for NPUW_LLM_PREFILL_ATTENTION_HINT; they
    also need NPUW_LLM_BATCH_SLOTS = 1. HFA runs three programs a layer for each token, where STATIC
    and PYRAMID run one for all layers: it halves the tokens per second of a small model."""
    generate_moe_hint: MoeHint = Field("DENSE", alias="NPUW_LLM_GENERATE_MOE_HINT")
    """Experts of a mixture that run on a generated token: DENSE, all of them, in one program;
    HOST_ROUTED, those that the router chose: only their weights are read, but the host runs
    between layers; DEVICE_ROUTED, the same experts, in one program that looks up their weights
    itself, for models whose experts' weights are one tensor (Qwen3-MoE). No effect on models
    without experts."""
    shared_head: bool = Field(True, alias="NPUW_LLM_SHARED_HEAD")
    """Compile the LM head once, as a separate model that all others share."""

    @field_validator("pyramid_steps")
    @classmethod
    def _check_steps(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if value and (sorted({*value}) != [*value] or value[0] < 2):
            raise ValueError("capacities must be 2 or more, and ascend")
        return value


class ExpertOptions(OptionGroup):
    """Experts to which the host routes tokens (HOST_ROUTED)."""

    title: ClassVar[str] = "Mixtures of experts"

    moe_token_chunk_size: int = Field(0, alias="NPUW_MOE_TOKEN_CHUNK_SIZE", ge=0, le=MANY)
    """Tokens that one run of an expert accepts in models for several tokens; an expert's tokens are
    split and padded to this number. 0 uses the average tokens per expert, at least 16."""
    moe_pool_size: int = Field(8, alias="NPUW_MOE_POOL_SIZE", ge=0, le=1 << 16)
    """Most recently used experts of a layer that stay bound to their own program; binding another
    one costs the host a part of its run. 0 uses one program, and binds it for each expert."""


KvElement = Literal["", "f32", "f16", "bf16", "i8", "f8e4m3", "f8e5m2"]
"""Element type of cached K and V; "" is the type of activations."""

KV_ELEMENTS: dict[str, KvElement] = {
    "": "",
    "f32": "f32",
    "f16": "f16",
    "bf16": "bf16",
    "i8": "i8",
    "u8": "i8",
    "f8e4m3": "f8e4m3",
    "f8e5m2": "f8e5m2",
}
"""Element types by value of KV_CACHE_PRECISION, for activations of another type."""


class KvOptions(OptionGroup):
    """K and V caches."""

    title: ClassVar[str] = "KV cache"

    kv_cache_precision: Literal["", "f32", "f16", "bf16", "i8", "u8", "f8e4m3", "f8e5m2"] = Field(
        "", alias="KV_CACHE_PRECISION"
    )
    """The element type of K and V caches. Empty is the type of activations
    (INFERENCE_PRECISION_HINT), whereas NPUW then stores f16. f32, f16 and bf16 are floats; f8e4m3
    and f8e5m2 are floats of 8 bits, which saturate. i8 stores 8 bits and a scale for each row of a
    head; u8 is the same here, as rows need no zero points. Attention reads each type directly, with
    less memory and traffic: f16 halves both if activations are f32. Only f32 with activations of 16
    bits is converted before attention, with equal results and no saving."""
    optimize_v_tensors: bool = Field(False, alias="NPUW_LLM_OPTIMIZE_V_TENSORS")
    """Store V transposed, the values of each channel contiguous, as NPUW does by default. The
    matmul reads V as fast either way here; new rows must then be copied, as with
    NPUW_LLM_KV_SWITCHOVER = COPY. With HFA or DYNAMIC attention in either hint, V is not
    transposed; in NPUW only DYNAMIC prevents it."""
    optimize_fp8: bool = Field(False, alias="NPUW_LLM_OPTIMIZE_FP8")
    """Store caches in the 8-bit float type that a quantised model rounds K and V to (FakeConvert),
    if all layers use one type: the conversion of each token is then stored, not repeated. With a
    KV_CACHE_PRECISION of another type the model is computed unchanged."""
    kv_switchover: Literal["ZERO_COPY", "COPY"] = Field(
        "ZERO_COPY", alias="NPUW_LLM_KV_SWITCHOVER", json_schema_extra=OURS
    )
    """From prefill to generate: with ZERO_COPY, prefill writes its rows where generate reads them;
    COPY copies them, as NPUW does. NPUW_LLM_OPTIMIZE_V_TENSORS requires copies."""
    enable_block_based_kv_cache: bool = Field(False, alias="NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE")
    """Store caches in blocks of a chunk's length, allocated as tokens are stored: a short
    conversation uses little memory, and growth moves no rows. Needs prompts that are read in
    chunks. Once in 128 tokens, or once a block if blocks are larger, a step takes longer, as new
    blocks are bound."""
