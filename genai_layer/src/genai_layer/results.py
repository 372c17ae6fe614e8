"""Inputs and results of ``generate``.

Source: openvino_genai, docs/reference/genai.md#results.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from genai_layer.checked import read_as
from genai_layer.named_enum import NamedEnum
from genai_layer.perf_metrics import PerfMetrics
from genai_layer.tensor import RowsLike, Tensor

if TYPE_CHECKING:
    from genai_layer.speculation.perf_metrics import SDPerModelsPerfMetrics


class GenerationFinishReason(NamedEnum):
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
    """The runtime's KV cache is full and forgets nothing: NPUW_LLM_ON_FULL = ERROR, or TRUNCATE for
    several sequences. Ours; openvino_genai returns NONE."""


@dataclass(slots=True, init=False)
class TokenizedInputs:
    """Token ids i64 [batch, n] and their mask.

    Raises:
        ArgumentError: a value is not an array, a tensor or nested lists.
    """

    input_ids: Tensor
    attention_mask: Tensor

    def __init__(self, input_ids: RowsLike, attention_mask: RowsLike) -> None:
        self.__setattr__("input_ids", input_ids)
        self.__setattr__("attention_mask", attention_mask)

    def __setattr__(self, name: str, value: RowsLike) -> None:
        given = read_as(f"TokenizedInputs.{name}", value, RowsLike)
        object.__setattr__(self, name, Tensor(given))


@dataclass(frozen=True, slots=True)
class EncodedResults:
    """Generated ids, the stop token included."""

    tokens: list[list[int]]
    scores: list[float]
    finish_reasons: list[GenerationFinishReason]
    perf_metrics: PerfMetrics = field(repr=False)
    extended_perf_metrics: SDPerModelsPerfMetrics | None = field(default=None, repr=False)
    """Metrics of both models; None without a draft model."""


@dataclass(frozen=True, slots=True)
class DecodedResults:
    """Generated texts; ``str`` returns the text, or lines "score: text" of several."""

    texts: list[str] = field(default_factory=list[str])
    scores: list[float] = field(default_factory=list[float])
    finish_reasons: list[GenerationFinishReason] = field(
        default_factory=list[GenerationFinishReason]
    )
    perf_metrics: PerfMetrics = field(default_factory=PerfMetrics, repr=False)
    extended_perf_metrics: SDPerModelsPerfMetrics | None = field(default=None, repr=False)
    """Metrics of both models; None without a draft model."""
    parsed: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]], repr=False)
    """Messages of parsers, one for each text; empty without parsers."""

    def __str__(self) -> str:
        if len(self.texts) == 1:
            return self.texts[0]
        lines = zip(self.scores, self.texts, strict=True)
        return "\n".join(f"{score:.6f}: {text}" for score, text in lines)
