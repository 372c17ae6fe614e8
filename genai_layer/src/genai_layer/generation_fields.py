"""Fields of a generation's parameters, and the method of decoding that they select.

Source: openvino_genai.GenerationConfig, docs/reference/genai.md#generation-config.
"""

from __future__ import annotations

from copy import copy
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, field_validator

from genai_layer.lora.adapter_config import AdapterConfig
from genai_layer.named_enum import NamedEnum
from genai_layer.parameters import Parameters
from genai_layer.parsers.base import Parser
from genai_layer.structured.config import StructuredOutputConfig

UNSET = (1 << 64) - 1
"""The value for "no limit", as in openvino_genai."""


class StopCriteria(NamedEnum):
    """Condition under which beam search ends."""

    EARLY = 0
    """The number of complete texts equals that of beams."""
    HEURISTIC = 1
    """A better text is unlikely."""
    NEVER = 2
    """A better text is impossible."""


Count = Annotated[int, Field(ge=0, le=UNSET)]
TokenId = Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)]
"""Id of a token, i64 as in openvino_genai."""


class GenerationFields(Parameters):
    """Values of a generation's parameters, with openvino_genai's names and defaults."""

    _noun: ClassVar[str] = "generation parameter"

    max_new_tokens: Count = UNSET
    max_length: Count = UNSET
    """Length of prompt and generated tokens together; used only if max_new_tokens is not set."""
    min_new_tokens: Count = 0
    """Number of tokens before which no stop token is generated."""
    ignore_eos: bool = False
    """Ignore stop tokens; stop strings still end the generation."""
    eos_token_id: TokenId = -1
    stop_token_ids: set[TokenId] = Field(default_factory=set[int])
    stop_strings: set[str] = Field(default_factory=set[str])
    include_stop_str_in_output: bool = False
    echo: bool = False
    """Return the prompt, too."""
    logprobs: Count = 0
    """Any value above 0 makes the score the sum of the raw log-probabilities. Ours: one above 1 is
    also the number of likeliest tokens that continuous batching outputs for each place."""
    num_return_sequences: Count = 1
    apply_chat_template: bool = True
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: dict[TokenId, float] = Field(default_factory=dict[int, float])
    """Numbers to add to the logits of some ids before penalties. Ours."""

    do_sample: bool = False
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: Count = UNSET
    """Number of likeliest tokens to sample from; 0 disables the filter, too."""
    min_p: float = 0.0
    rng_seed: Count = 0
    """Seed of the draws; its low 32 bits count."""

    num_beams: Count = 1
    """Number of beams; beam search needs more than one, and reads the next six fields."""
    num_beam_groups: Count = 1
    diversity_penalty: float = 0.0
    length_penalty: float = 1.0
    no_repeat_ngram_size: Count = UNSET
    stop_criteria: StopCriteria = StopCriteria.HEURISTIC

    assistant_confidence_threshold: float = 0.0
    num_assistant_tokens: Count | None = None
    """Number of tokens that an assistant drafts per step; on NPU, while they make texts faster."""
    max_ngram_size: Count = 0
    """Length of the text that prompt lookup searches for; 0 disables it."""
    branching_factor: Count = 1
    """Number of branches at each level of a tree of drafted tokens."""
    tree_depth: Count = 0
    """Depth of that tree; 0 disables it."""

    pruning_ratio: Count = 0
    """Share of image tokens to drop; only models of images read it."""
    relevance_weight: float = 0.5
    """Weight of a prompt's relevance, when image tokens are dropped."""
    return_omni_outputs: bool = False
    """Return hidden states for a model of speech."""
    adapters: Annotated[AdapterConfig | None, AfterValidator(copy)] = None
    """LoRA adapters among those of the pipeline; None keeps the current ones."""
    structured_output_config: Annotated[StructuredOutputConfig | None, AfterValidator(copy)] = None
    """Grammar of the text."""
    parsers: list[Parser] = Field(default_factory=list[Parser])
    """Parsers of the text, applied in this order; copies of the parameters share them."""

    @field_validator("stop_strings", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return {value} if isinstance(value, str) else value

    def is_greedy_decoding(self) -> bool:
        """Return whether the likeliest token is always chosen."""
        return not (self.do_sample or self.is_beam_search() or self.is_tree_search())

    def is_multinomial(self) -> bool:
        """Return whether tokens are sampled."""
        return self.do_sample

    def is_beam_search(self) -> bool:
        """Return whether several texts compete."""
        return self.num_beams > 1

    def is_tree_search(self) -> bool:
        """Return whether an assistant drafts a tree of tokens."""
        return self.tree_depth > 0

    def is_assisting_generation(self) -> bool:
        """Return whether an assistant drafts tokens."""
        return self.assistant_confidence_threshold > 0 or (self.num_assistant_tokens or 0) > 0

    def is_prompt_lookup(self) -> bool:
        """Return whether drafted tokens are taken from the prompt."""
        return self.max_ngram_size > 0 and (self.num_assistant_tokens or 0) > 0
