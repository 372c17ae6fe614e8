"""Options of language models: lengths, prefill, generate, experts, KV cache."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from npuw_layer.options.base import MANY, OURS, Only, OptionGroup


class LengthOptions(OptionGroup):
    """Lengths of the static models."""

    title: ClassVar[str] = "LLM lengths"

    max_prompt_len: int = Field(1024, alias="NPUW_LLM_MAX_PROMPT_LEN", ge=1, le=MANY)
    """The longest prompt, in tokens; rounded up to 64, and to the chunk."""
    min_response_len: int = Field(128, alias="NPUW_LLM_MIN_RESPONSE_LEN", ge=0, le=MANY)
    """Least number of tokens that can be generated after a full prompt; rounded up to 64."""
    max_generation_token_len: int = Field(
        1, alias="NPUW_LLM_MAX_GENERATION_TOKEN_LEN", ge=1, le=1024
    )
    """Tokens that one generate call takes, for candidates of speculative decoding; more than 1 is
    rounded up to 8. Generate models span more positions than that."""
    batch_dim: int = Field(0, alias="NPUW_LLM_BATCH_DIM", ge=0, le=3)
    """The axis of the model's K and V caches that counts sequences; left out, that is looked up in
    the model."""
    seq_len_dim: int = Field(2, alias="NPUW_LLM_SEQ_LEN_DIM", ge=0, le=3)
    """The axis that counts tokens; left out, that is looked up in the model."""
    max_lora_rank: int = Field(32, alias="NPUW_LLM_MAX_LORA_RANK", ge=1, le=MANY)
    """The largest rank of LoRA adapters: that of the inputs that they come in by, in a model with
    states for them. Smaller ones are padded with zeros, which cost as much as ranks in use."""
    on_full: Literal["ERROR", "TRUNCATE", "SLIDE"] = Field(
        "ERROR", alias="NPUW_LLM_ON_FULL", json_schema_extra=OURS
    )
    """Behaviour of a full cache: ERROR ends the conversation; TRUNCATE forgets the middle, and
    reads the first tokens and the newest, half a prompt, again; SLIDE forgets the oldest tokens but
    the first ones at each step, and reads nothing again. A later turn that prefill has no room for
    is read by steps then."""
    sink_tokens: int = Field(4, alias="NPUW_LLM_SINK_TOKENS", ge=0, le=MANY, json_schema_extra=OURS)
    """First tokens that SLIDE and TRUNCATE keep, at most a quarter of the longest prompt: attention
    needs somewhere to rest."""


PROMPT_GRAIN = 64
"""Longest prompts are rounded up to multiples of this number of tokens."""

AttentionHint = Literal["STATIC", "DYNAMIC", "PYRAMID", "HFA"]

ISOLATED = ("HFA", "DYNAMIC")
"""Attention hints that make each attention a separate submodel."""

MoeHint = Literal["DENSE", "HOST_ROUTED", "DEVICE_ROUTED"]
"""Ways to run experts; the original's default is HOST_ROUTED."""


class PrefillOptions(OptionGroup):
    """The models that read prompts."""

    title: ClassVar[str] = "Prefill"

    prefill_hint: Literal["DYNAMIC", "STATIC"] = Field("DYNAMIC", alias="NPUW_LLM_PREFILL_HINT")
    """DYNAMIC reads long prompts in chunks, STATIC whole."""
    prefill_chunk_size: int = Field(1024, alias="NPUW_LLM_PREFILL_CHUNK_SIZE", ge=0)
    """Tokens of a chunk, a power of two; 0 reads prompts whole."""
    prefill_pyramid: bool = Field(True, alias="NPUW_LLM_PREFILL_PYRAMID", json_schema_extra=OURS)
    """Compile prefill models of several lengths, so that short prompts and last chunks pay for the
    smallest that holds them."""
    prefill_attention_hint: AttentionHint = Field(
        "PYRAMID", alias="NPUW_LLM_PREFILL_ATTENTION_HINT"
    )
    """PYRAMID attends no farther than the chunk reaches, STATIC over all positions. HFA (host flash
    attention) and DYNAMIC run each attention as a submodel of its own, if prompts are read in
    chunks: HFA in tiles of a chunk's length, of which the host runs those that are attended to;
    DYNAMIC on the host, over exactly the stored positions (NPUW_DEVICES must have CPU). Both need
    NPUW_WEIGHTS_OFFLOAD = NO, and V is not transposed with them."""
    prefill_moe_hint: Annotated[
        MoeHint,
        Only(
            ("DENSE", "HOST_ROUTED"),
            "experts of a prompt take as many tokens as the host brings them; use HOST_ROUTED",
        ),
    ] = Field("DENSE", alias="NPUW_LLM_PREFILL_MOE_HINT")
    """Experts of a mixture that a prompt's tokens pass: DENSE, all of them, in one program;
    HOST_ROUTED, those that the router chose, each run by the host. Models without
    experts are the same."""
    enable_prefix_caching: bool = Field(False, alias="NPUW_LLM_ENABLE_PREFIX_CACHING")
    """Keep K and V of prompts that begin a conversation by blocks of tokens: what a prompt begins
    with like an earlier one is not computed again."""
    prefix_caching_block_size: int = Field(
        256, alias="NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE", ge=1, le=1 << 20
    )
    """Tokens of a block."""
    prefix_caching_max_num_blocks: int = Field(
        128, alias="NPUW_LLM_PREFIX_CACHING_MAX_NUM_BLOCKS", ge=1, le=1 << 32
    )
    """Blocks that are kept; those not used for longest go first."""
    prefix_caching_max_bytes: int = Field(
        1 << 30,
        alias="NPUW_LLM_PREFIX_CACHING_MAX_BYTES",
        ge=0,
        le=1 << 50,
        json_schema_extra=OURS,
    )
    """Bytes that blocks may take together; 0 leaves it to their number."""
    enable_continuous_prefill: bool = Field(False, alias="NPUW_LLM_ENABLE_CONTINUOUS_PREFILL")
    """Let several tokens at once go on with what is stored, by prefill; otherwise they must be a
    new conversation, or fit one generate step. Where they go on, position_ids say; that alone is
    enough here. Or, as in the original, the caller first sets the variable npuw_stored_tokens_state
    to how many tokens are to stay, and reads back how many are granted (as many, unless the cache
    was full): then the next inference must go on there."""


class GenerateOptions(OptionGroup):
    """The models that add a token to a conversation."""

    title: ClassVar[str] = "Generate"

    generate_pyramid: bool = Field(True, alias="NPUW_LLM_GENERATE_PYRAMID")
    """Compile generate models of several capacities, so that short conversations run faster."""
    pyramid_steps: tuple[int, ...] = Field(
        (), alias="NPUW_LLM_GENERATE_PYRAMID_STEPS", json_schema_extra=OURS
    )
    """Their capacities, ascending, e.g. "256,1152"; empty doubles from 256."""
    batch_slots: tuple[Annotated[int, Field(ge=1, le=64)], ...] = Field(
        (1,), alias="NPUW_LLM_BATCH_SLOTS", json_schema_extra=OURS
    )
    """Conversations that generate in one inference, e.g. "1,4,8". For each number above 1 the
    generate models are compiled once more; a step runs the smallest that has room for all."""
    eagle: bool = Field(False, alias="NPUW_EAGLE")
    """The model is the target or the draft of speculative decoding by Eagle 3: beside logits it
    gives last_hidden_state of each new token, and a draft takes hidden_states. With eagle_tree_mask
    it reads trees of candidates, and npuw_eagle3_sampling_result tells which of them stay. Its
    ports tell that anyway; YES refuses a model that gives none."""
    generate_hint: Literal["FAST_COMPILE", "BEST_PERF"] = Field(
        "FAST_COMPILE", alias="NPUW_LLM_GENERATE_HINT"
    )
    """FAST_COMPILE compiles equal layers of the generate models once, BEST_PERF each by itself:
    that takes longer, and layers may overlap more. NPUW_FOLD goes before it if that is set."""
    generate_attention_hint: AttentionHint = Field(
        "STATIC", alias="NPUW_LLM_GENERATE_ATTENTION_HINT"
    )
    """STATIC attends over all positions of a variant; PYRAMID has variants, whatever
    NPUW_LLM_GENERATE_PYRAMID says. HFA and DYNAMIC are as for NPUW_LLM_PREFILL_ATTENTION_HINT; they
    need NPUW_LLM_BATCH_SLOTS = 1, too."""
    generate_moe_hint: MoeHint = Field("DENSE", alias="NPUW_LLM_GENERATE_MOE_HINT")
    """Experts of a mixture that a generated token passes: DENSE, all of them, in one program;
    HOST_ROUTED, those that the router chose: only their weights are read, but the host runs
    between layers. DEVICE_ROUTED, the same experts, in one program that looks their weights up by
    itself; it takes models whose experts' weights lie in one tensor (Qwen3-MoE). Models without
    experts are the same."""
    shared_head: bool = Field(True, alias="NPUW_LLM_SHARED_HEAD")
    """Compile the product with the vocabulary once, as a model that all others share."""

    @field_validator("pyramid_steps")
    @classmethod
    def _check_steps(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if value and (sorted({*value}) != [*value] or value[0] < 2):
            raise ValueError("capacities must ascend, from 2 on")
        return value


class ExpertOptions(OptionGroup):
    """Experts to which the host routes tokens (HOST_ROUTED)."""

    title: ClassVar[str] = "Mixtures of experts"

    moe_token_chunk_size: int = Field(0, alias="NPUW_MOE_TOKEN_CHUNK_SIZE", ge=0, le=MANY)
    """Tokens that an expert takes at once where it may get several; what it gets is cut into so
    many and padded. 0 takes as many as an expert gets on average, at least 16."""
    moe_pool_size: int = Field(8, alias="NPUW_MOE_POOL_SIZE", ge=0, le=1 << 16)
    """Experts of a layer that stay bound to a program of their own, those that were used last; to
    bind one anew costs the host a part of its run. 0 binds one program anew for each."""


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
"""Element types by values of KV_CACHE_PRECISION, if activations have another type."""


class KvOptions(OptionGroup):
    """K and V caches."""

    title: ClassVar[str] = "KV cache"

    kv_cache_precision: Literal["", "f32", "f16", "bf16", "i8", "u8", "f8e4m3", "f8e5m2"] = Field(
        "", alias="KV_CACHE_PRECISION"
    )
    """The element type of K and V caches. Empty is that of activations (INFERENCE_PRECISION_HINT);
    the original stores f16 then, whatever activations are. f32, f16 and bf16 are floats; f8e4m3 and
    f8e5m2 are floats of 8 bits; what is larger than they hold becomes the largest. i8 keeps 8 bits
    and a scale for each row of a head, and u8 is the same here, as rows need no zero points.
    Attention reads all of them as they are, with less memory and less traffic: f16 halves both
    where activations are f32. Only f32 where activations have 16 bits is converted before: the same
    numbers, and no less of anything."""
    optimize_v_tensors: bool = Field(False, alias="NPUW_LLM_OPTIMIZE_V_TENSORS")
    """Store V transposed, each channel's values side by side, as the original does unless told
    otherwise. The product reads V as fast either way here; new rows have to be copied then, as with
    NPUW_LLM_KV_SWITCHOVER = COPY. With HFA or DYNAMIC attention, in either hint, V stays as it is,
    which the original does with DYNAMIC alone."""
    optimize_fp8: bool = Field(False, alias="NPUW_LLM_OPTIMIZE_FP8")
    """Store caches in the floats of 8 bits that a quantised model rounds to (FakeConvert), if that
    is one type everywhere: what it computes of K and V for each token anew is stored. With
    KV_CACHE_PRECISION of another type the model is computed as it is."""
    kv_switchover: Literal["ZERO_COPY", "COPY"] = Field(
        "ZERO_COPY", alias="NPUW_LLM_KV_SWITCHOVER", json_schema_extra=OURS
    )
    """From prefill to generate: ZERO_COPY lets prefill write its rows where generate reads them,
    COPY copies them as the original does. With NPUW_LLM_OPTIMIZE_V_TENSORS they are copied."""
    enable_block_based_kv_cache: bool = Field(False, alias="NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE")
    """Store caches in blocks of a chunk's length, which are allocated when tokens come for them: a
    short conversation takes little memory, and nothing moves when it grows. Needs prompts that are
    read in chunks. Once in 128 tokens, or in a block's if that has more, a step takes longer, as
    new blocks are bound."""
