"""How a Whisper decoder is split."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from npuw_layer.options.base import MANY, OURS, OptionGroup


class WhisperOptions(OptionGroup):
    """Speech recognition: a decoder that attends to what an encoder made of audio."""

    title: ClassVar[str] = "Whisper"

    whisper: bool = Field(False, alias="NPUW_WHISPER")
    """Split a Whisper decoder (input_ids, encoder_hidden_states): the first model reads the prompt
    and makes K and V of the audio once, the others generate. As in the original a prompt has up to
    4 tokens and the cache 448 rows; NPUW_LLM_MAX_PROMPT_LEN allows longer prompts, within these.
    Prompts are read whole, layers are not folded, and NPUW_LLM_SHARED_HEAD, NPUW_LLM_CACHE_ROPE and
    NPUW_LLM_OPTIMIZE_V_TENSORS are NO, whatever they were set to. Several tokens always begin anew,
    and so does the first one after reset_state."""
    whisper_eos_token: int = Field(50257, alias="NPUW_WHISPER_EOS_TOKEN", ge=0, le=MANY)
    """The token that ends a text: when the last row of the cache is taken it is the one that
    logits choose, so that whoever generates stops there."""
    whisper_decompose_sdpa: bool = Field(False, alias="NPUW_WHISPER_DECOMPOSE_SDPA")
    """Give out what each layer attends to in the audio, for timestamps of words: outputs
    cross_attention_qk_scaled_scores_0 and so on, f32 [1, heads, tokens, frames], of the last
    prompt. Prompts may then have 447 tokens, so that whole texts can be read again."""
    whisper_encoder_len: int = Field(
        1500, alias="NPUW_WHISPER_ENCODER_LEN", ge=1, le=MANY, json_schema_extra=OURS
    )
    """Frames that the encoder gives, for a decoder whose encoder_hidden_states are of any number;
    the original wants the model reshaped."""
