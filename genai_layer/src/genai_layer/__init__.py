"""LLM pipelines with openvino_genai's names, over any OpenVINO-shaped runtime.

pipe = LLMPipeline("models/demo", "NPU")
print(pipe.generate("What is an NPU?", max_new_tokens=60))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from genai_layer.asr import ASRDecodedResultChunk as ASRDecodedResultChunk
    from genai_layer.asr import ASRDecodedResults as ASRDecodedResults
    from genai_layer.asr import ASRGenerationConfig as ASRGenerationConfig
    from genai_layer.asr import ASRPerfMetrics as ASRPerfMetrics
    from genai_layer.asr import ASRPipeline as ASRPipeline
    from genai_layer.asr import ASRRawPerfMetrics as ASRRawPerfMetrics
    from genai_layer.batching.pipeline import (
        ContinuousBatchingPipeline as ContinuousBatchingPipeline,
    )
    from genai_layer.batching.request import GenerationStatus as GenerationStatus
    from genai_layer.batching.results import GenerationResult as GenerationResult
    from genai_layer.chat_history import ChatHistory as ChatHistory
    from genai_layer.embedding.pipeline import EmbeddingPipeline as EmbeddingPipeline
    from genai_layer.embedding.pipeline import EmbedResult as EmbedResult
    from genai_layer.errors import AdapterError as AdapterError
    from genai_layer.errors import ArgumentError as ArgumentError
    from genai_layer.errors import BusyError as BusyError
    from genai_layer.errors import ConfigError as ConfigError
    from genai_layer.errors import GenAIError as GenAIError
    from genai_layer.errors import ModelError as ModelError
    from genai_layer.errors import ParseError as ParseError
    from genai_layer.errors import PromptError as PromptError
    from genai_layer.errors import PropertyError as PropertyError
    from genai_layer.errors import RuntimeFailure as RuntimeFailure
    from genai_layer.errors import TemplateError as TemplateError
    from genai_layer.generation_config import GenerationConfig as GenerationConfig
    from genai_layer.generation_fields import StopCriteria as StopCriteria
    from genai_layer.lora.adapter import Adapter as Adapter
    from genai_layer.lora.adapter_config import AdapterConfig as AdapterConfig
    from genai_layer.parsers.base import IncrementalParser as IncrementalParser
    from genai_layer.parsers.base import Parser as Parser
    from genai_layer.parsers.reasoning import (
        DeepSeekR1ReasoningIncrementalParser as DeepSeekR1ReasoningIncrementalParser,
    )
    from genai_layer.parsers.reasoning import DeepSeekR1ReasoningParser as DeepSeekR1ReasoningParser
    from genai_layer.parsers.reasoning import (
        Phi4ReasoningIncrementalParser as Phi4ReasoningIncrementalParser,
    )
    from genai_layer.parsers.reasoning import Phi4ReasoningParser as Phi4ReasoningParser
    from genai_layer.parsers.reasoning import (
        ReasoningIncrementalParser as ReasoningIncrementalParser,
    )
    from genai_layer.parsers.reasoning import ReasoningParser as ReasoningParser
    from genai_layer.parsers.streamer import TextParserStreamer as TextParserStreamer
    from genai_layer.parsers.tool_calls import Llama3JsonToolParser as Llama3JsonToolParser
    from genai_layer.parsers.tool_calls import Llama3PythonicToolParser as Llama3PythonicToolParser
    from genai_layer.parsers.vllm import VLLMParserWrapper as VLLMParserWrapper
    from genai_layer.perf_metrics import PerfMetrics as PerfMetrics
    from genai_layer.perf_metrics import RawPerfMetrics as RawPerfMetrics
    from genai_layer.pipeline import LLMPipeline as LLMPipeline
    from genai_layer.results import DecodedResults as DecodedResults
    from genai_layer.results import EncodedResults as EncodedResults
    from genai_layer.results import GenerationFinishReason as GenerationFinishReason
    from genai_layer.results import TokenizedInputs as TokenizedInputs
    from genai_layer.scheduler import AggregationMode as AggregationMode
    from genai_layer.scheduler import CacheEvictionConfig as CacheEvictionConfig
    from genai_layer.scheduler import (
        KVCrushAnchorPointMode as KVCrushAnchorPointMode,
    )
    from genai_layer.scheduler import KVCrushConfig as KVCrushConfig
    from genai_layer.scheduler import SchedulerConfig as SchedulerConfig
    from genai_layer.scheduler import (
        SparseAttentionConfig as SparseAttentionConfig,
    )
    from genai_layer.scheduler import SparseAttentionMode as SparseAttentionMode
    from genai_layer.speculation.draft_model import draft_model as draft_model
    from genai_layer.streamers import StreamerBase as StreamerBase
    from genai_layer.streamers import StreamingStatus as StreamingStatus
    from genai_layer.streamers import TextStreamer as TextStreamer
    from genai_layer.structured.config import StructuralTagItem as StructuralTagItem
    from genai_layer.structured.config import StructuralTagsConfig as StructuralTagsConfig
    from genai_layer.structured.config import StructuredOutputConfig as StructuredOutputConfig
    from genai_layer.tensor import Tensor as Tensor
    from genai_layer.texts.embedding import TextEmbeddingPipeline as TextEmbeddingPipeline
    from genai_layer.texts.rerank import TextRerankPipeline as TextRerankPipeline
    from genai_layer.tokenizer import Tokenizer as Tokenizer
    from genai_layer.vision.pipeline import VLMPipeline as VLMPipeline
    from genai_layer.vision.results import VLMDecodedResults as VLMDecodedResults
    from genai_layer.vision.visuals import VideoMetadata as VideoMetadata
    from genai_layer.whisper.generation_config import (
        WhisperGenerationConfig as WhisperGenerationConfig,
    )
    from genai_layer.whisper.pipeline import WhisperPipeline as WhisperPipeline
    from genai_layer.whisper.results import WhisperDecodedResultChunk as WhisperDecodedResultChunk
    from genai_layer.whisper.results import WhisperDecodedResults as WhisperDecodedResults
    from genai_layer.whisper.results import WhisperPerfMetrics as WhisperPerfMetrics
    from genai_layer.whisper.results import WhisperRawPerfMetrics as WhisperRawPerfMetrics
    from genai_layer.whisper.results import WhisperWordTiming as WhisperWordTiming

_HOMES = {
    "ContinuousBatchingPipeline": "batching.pipeline",
    "GenerationResult": "batching.results",
    "GenerationStatus": "batching.request",
    "ChatHistory": "chat_history",
    "ASRDecodedResultChunk": "asr",
    "ASRDecodedResults": "asr",
    "ASRGenerationConfig": "asr",
    "ASRPerfMetrics": "asr",
    "ASRPipeline": "asr",
    "ASRRawPerfMetrics": "asr",
    "WhisperPerfMetrics": "whisper.results",
    "WhisperRawPerfMetrics": "whisper.results",
    "WhisperWordTiming": "whisper.results",
    "AdapterError": "errors",
    "ArgumentError": "errors",
    "BusyError": "errors",
    "ConfigError": "errors",
    "GenAIError": "errors",
    "ModelError": "errors",
    "ParseError": "errors",
    "PromptError": "errors",
    "PropertyError": "errors",
    "RuntimeFailure": "errors",
    "TemplateError": "errors",
    "GenerationConfig": "generation_config",
    "StopCriteria": "generation_fields",
    "Adapter": "lora.adapter",
    "AdapterConfig": "lora.adapter_config",
    "IncrementalParser": "parsers.base",
    "Parser": "parsers.base",
    "DeepSeekR1ReasoningIncrementalParser": "parsers.reasoning",
    "Phi4ReasoningIncrementalParser": "parsers.reasoning",
    "ReasoningIncrementalParser": "parsers.reasoning",
    "DeepSeekR1ReasoningParser": "parsers.reasoning",
    "EmbedResult": "embedding.pipeline",
    "EmbeddingPipeline": "embedding.pipeline",
    "Phi4ReasoningParser": "parsers.reasoning",
    "ReasoningParser": "parsers.reasoning",
    "TextParserStreamer": "parsers.streamer",
    "Llama3JsonToolParser": "parsers.tool_calls",
    "Llama3PythonicToolParser": "parsers.tool_calls",
    "VLLMParserWrapper": "parsers.vllm",
    "PerfMetrics": "perf_metrics",
    "RawPerfMetrics": "perf_metrics",
    "LLMPipeline": "pipeline",
    "DecodedResults": "results",
    "EncodedResults": "results",
    "GenerationFinishReason": "results",
    "TokenizedInputs": "results",
    "AggregationMode": "scheduler",
    "CacheEvictionConfig": "scheduler",
    "KVCrushAnchorPointMode": "scheduler",
    "KVCrushConfig": "scheduler",
    "SchedulerConfig": "scheduler",
    "SparseAttentionConfig": "scheduler",
    "SparseAttentionMode": "scheduler",
    "draft_model": "speculation.draft_model",
    "StreamerBase": "streamers",
    "StreamingStatus": "streamers",
    "TextStreamer": "streamers",
    "StructuralTagItem": "structured.config",
    "StructuralTagsConfig": "structured.config",
    "StructuredOutputConfig": "structured.config",
    "Tensor": "tensor",
    "TextEmbeddingPipeline": "texts.embedding",
    "TextRerankPipeline": "texts.rerank",
    "Tokenizer": "tokenizer",
    "VLMDecodedResults": "vision.results",
    "VLMPipeline": "vision.pipeline",
    "VideoMetadata": "vision.visuals",
    "WhisperGenerationConfig": "whisper.generation_config",
    "WhisperPipeline": "whisper.pipeline",
    "WhisperDecodedResultChunk": "whisper.results",
    "WhisperDecodedResults": "whisper.results",
}
"""Modules of the public names, imported at first use so that a tool starts fast."""

__all__ = [*_HOMES, "get_version"]  # pyright: ignore[reportUnsupportedDunderAll] (the table has the names)


def get_version() -> str:
    """Return the version of genai_layer."""
    return __version__


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
