"""Inputs and results of ``generate``.

Source: openvino_genai, docs/reference/genai.md#results.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from genai_layer.perf_metrics import PerfMetrics
from genai_layer.tensor import Tensor, TensorLike


class GenerationFinishReason(IntEnum):
    """Reason for the end of a generation."""

    NONE = 0
    """The streamer cancelled the generation."""
    STOP = 1
    """An end-of-turn token, stop token, stop string or streamer stopped the generation."""
    LENGTH = 2
    """max_new_tokens or max_length is reached."""
    TOOL_CALL = 3
    """The streamer recognised a tool call."""
    CAPACITY = 4
    """The runtime's KV cache is full and forgets nothing (NPUW_LLM_ON_FULL = ERROR). Ours;
    openvino_genai returns NONE."""


@dataclass(slots=True, init=False)
class TokenizedInputs:
    """Token ids i64 [batch, n] and their mask.

    Raises:
        PromptError: an argument is not an array, a tensor or nested lists.
    """

    input_ids: Tensor
    attention_mask: Tensor

    def __init__(self, input_ids: TensorLike, attention_mask: TensorLike) -> None:
        self.input_ids = Tensor(input_ids)
        self.attention_mask = Tensor(attention_mask)


@dataclass(frozen=True, slots=True)
class EncodedResults:
    """Generated ids, the stop token included."""

    tokens: list[list[int]]
    scores: list[float]
    finish_reasons: list[GenerationFinishReason]
    perf_metrics: PerfMetrics = field(repr=False)


@dataclass(frozen=True, slots=True)
class DecodedResults:
    """Generated texts."""

    texts: list[str]
    scores: list[float]
    finish_reasons: list[GenerationFinishReason]
    perf_metrics: PerfMetrics = field(repr=False)

    def __str__(self) -> str:
        return self.texts[0]
