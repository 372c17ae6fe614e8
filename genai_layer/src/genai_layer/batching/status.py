"""States of a request.

Source: openvino_genai.GenerationStatus, docs/reference/genai.md#continuous-batching.
"""

from __future__ import annotations

from genai_layer.decoding.generated_sequence import GeneratedSequence
from genai_layer.named_enum import NamedEnum
from genai_layer.results import GenerationFinishReason
from genai_layer.streamers import StreamingStatus


class GenerationStatus(NamedEnum):
    """State of a request."""

    RUNNING = 0
    """The request waits, or generates."""
    FINISHED = 1
    IGNORED = 2
    """The cache was full, or the request failed."""
    CANCEL = 3
    """The caller or the streamer cancelled the request; a chat drops the turn."""
    STOP = 4
    """The caller or the streamer stopped the request."""


_OF_STREAMER = {
    StreamingStatus.CANCEL: GenerationStatus.CANCEL,
    StreamingStatus.STOP: GenerationStatus.STOP,
    StreamingStatus.TOOL_CALL_STOP: GenerationStatus.STOP,
}


def status_of(texts: list[GeneratedSequence]) -> GenerationStatus:
    """Return the state of a request whose texts are complete."""
    if any(text.finish_reason is GenerationFinishReason.CAPACITY for text in texts):
        return GenerationStatus.IGNORED
    return _OF_STREAMER.get(texts[0].status, GenerationStatus.FINISHED)
