"""Options of Whisper decoders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from npuw_layer.options.base import MANY, OURS, OptionGroup
from npuw_layer.options.kinds import KindOptions
from npuw_layer.options.llm import KvOptions
from npuw_layer.options.model import OptionValues


class WhisperOptions(KindOptions):
    """Speech recognition: a decoder with cross-attention to an encoder's output."""

    title: ClassVar[str] = "Whisper"
    flags: ClassVar[tuple[str, ...]] = ("whisper",)
    follows: ClassVar[type[OptionGroup] | None] = KvOptions

    whisper: bool = Field(False, alias="NPUW_WHISPER")
    """Split a Whisper decoder (input_ids, encoder_hidden_states): the first model reads the prompt
    and computes K and V of the audio once, the others generate. As in NPUW, a prompt has up to 4
    tokens and the cache 448 rows; NPUW_LLM_MAX_PROMPT_LEN allows longer prompts within these.
    Prompts are read whole, layers are not folded, and NPUW_LLM_SHARED_HEAD, NPUW_LLM_CACHE_ROPE and
    NPUW_LLM_OPTIMIZE_V_TENSORS are always NO. Several tokens, and the first token after
    reset_state, always start a new text."""
    whisper_eos_token: int = Field(50257, alias="NPUW_WHISPER_EOS_TOKEN", ge=0, le=MANY)
    """Token that ends a text. When the last row of the cache is taken, the logits select this
    token, so that generation stops."""
    whisper_decompose_sdpa: bool = Field(False, alias="NPUW_WHISPER_DECOMPOSE_SDPA")
    """Return the scores of cross-attention, for timestamps of words: outputs
    cross_attention_qk_scaled_scores_0 and so on, one per layer, f32 [1, heads, tokens, frames], of
    the last prompt. Prompts may then have 447 tokens, so that complete texts can be read again."""
    whisper_encoder_len: int = Field(
        1500, alias="NPUW_WHISPER_ENCODER_LEN", ge=1, le=MANY, json_schema_extra=OURS
    )
    """Frames that the encoder returns, for a decoder whose encoder_hidden_states have an open
    number of frames; NPUW requires a reshaped model."""

    def excluded(self) -> Mapping[str, object]:
        """Exclude continued conversations, and prompts in chunks: a prompt has a few tokens."""
        options = self.group(OptionValues)
        return {
            "NPUW_LLM_MAX_GENERATION_TOKEN_LEN": options.max_generation_token_len > 1,
            "NPUW_LLM_BATCH_SLOTS": {*options.batch_slots} != {1},
            "NPUW_LLM_ON_FULL": options.on_full != "ERROR",
            "NPUW_LLM_ENABLE_PREFIX_CACHING": options.enable_prefix_caching,
            "NPUW_LLM_ENABLE_CONTINUOUS_PREFILL": options.enable_continuous_prefill,
            "NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": options.enable_block_based_kv_cache,
            "NPUW_LLM_GENERATE_ATTENTION_HINT": options.generate_attention_hint
            in ("HFA", "DYNAMIC"),
            "NPUW_WEIGHTS_OFFLOAD": options.weights_offload != "NO",
            "NPUW_SPATIAL": options.runs_spatial,
        }

    def cache_key(self) -> Mapping[str, str]:
        """Return whether a model is a decoder, its frames, and whether it returns scores."""
        return {
            "NPUW_WHISPER": str(self.whisper),
            "NPUW_WHISPER_DECOMPOSE_SDPA": str(self.whisper and self.whisper_decompose_sdpa),
            "NPUW_WHISPER_ENCODER_LEN": str(self.whisper and self.whisper_encoder_len),
        }

    def check(self) -> None:
        """Check that caches keep the only layout that splitting supports."""
        options = self.group(OptionValues)
        if self.whisper and (options.batch_dim, options.seq_len_dim) != (0, 2):
            raise ValueError(
                "NPUW_LLM_SEQ_LEN_DIM: Whisper's caches count tokens along axis 2 and sequences "
                "along axis 0; leave this option and NPUW_LLM_BATCH_DIM out"
            )
