"""How prompts are read."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from npuw_layer.options.base import OURS, Only, OptionGroup

AttentionHint = Literal["STATIC", "DYNAMIC", "PYRAMID", "HFA"]

MoeHint = Literal["DENSE", "HOST_ROUTED", "DEVICE_ROUTED"]
"""The original's default is HOST_ROUTED."""


class PrefillOptions(OptionGroup):
    """The model that reads prompts."""

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
    """Which experts of a mixture a prompt's tokens go through: DENSE through all, in one program;
    HOST_ROUTED through those that the router chose, which the host brings them to. Models without
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
