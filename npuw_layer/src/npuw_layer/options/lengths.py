"""How long prompts, answers and single steps are, and along which axes."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from npuw_layer.options.base import MANY, OURS, OptionGroup


class LengthOptions(OptionGroup):
    """Lengths of the static models."""

    title: ClassVar[str] = "LLM lengths"

    max_prompt_len: int = Field(1024, alias="NPUW_LLM_MAX_PROMPT_LEN", ge=1, le=MANY)
    """The longest prompt, in tokens; rounded up to 64, and to the chunk."""
    min_response_len: int = Field(128, alias="NPUW_LLM_MIN_RESPONSE_LEN", ge=0, le=MANY)
    """What can at least be generated after a full prompt; rounded up to 64."""
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
    """When the cache is full: ERROR ends the conversation; TRUNCATE forgets the middle, and reads
    the first tokens and the newest, half a prompt, again; SLIDE forgets the oldest tokens but the
    first ones at each step, and reads nothing again. A later turn that prefill has no room for is
    read by steps then."""
    sink_tokens: int = Field(4, alias="NPUW_LLM_SINK_TOKENS", ge=0, le=MANY, json_schema_extra=OURS)
    """First tokens that SLIDE and TRUNCATE keep, at most a quarter of the longest prompt: attention
    needs somewhere to rest."""
