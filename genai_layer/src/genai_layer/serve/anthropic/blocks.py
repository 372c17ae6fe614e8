"""Content of an answer as it grows: its blocks, their events, and the stop sequence at its end."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence

from genai_layer.serve.anthropic.replies import (
    AddedInput,
    AddedText,
    AnswerBlock,
    AnswerText,
    AnswerToolUse,
    BlockDelta,
    BlockStart,
    BlockStop,
    StreamEvent,
)
from genai_layer.serve.openai.tools.calls import Call, Part, Reader


class Blocks:
    """Blocks of an answer: texts, and calls between them."""

    def __init__(self) -> None:
        self.content: list[AnswerBlock] = []
        self._open: AnswerText | None = None
        """Text that grows."""

    def add(self, parts: Sequence[Part]) -> Iterator[StreamEvent]:
        """Add parts, and yield their events."""
        for part in parts:
            if isinstance(part, Call):
                yield from self.end()
                yield from self._add_call(part)
            else:
                yield from self._add_text(part)

    def end(self) -> Iterator[StreamEvent]:
        """End the text that grows, and yield its event."""
        if self._open is not None:
            self._open = None
            yield self._stop()

    def _add_text(self, text: str) -> Iterator[StreamEvent]:
        if self._open is None:
            self._open = AnswerText(type="text", text="")
            yield self._start(self._open)
        self._open.text += text
        yield self._delta(AddedText(type="text_delta", text=text))

    def _add_call(self, call: Call) -> Iterator[StreamEvent]:
        block = AnswerToolUse(type="tool_use", id=call.id, name=call.name, input={})
        yield self._start(block)
        block.input = json.loads(call.arguments)
        yield self._delta(AddedInput(type="input_json_delta", partial_json=call.arguments))
        yield self._stop()

    def _start(self, block: AnswerBlock) -> StreamEvent:
        """Append a block, and return its event, which later changes do not affect."""
        self.content.append(block)
        empty = block.model_copy()
        return BlockStart(type="content_block_start", index=self._last, content_block=empty)

    def _delta(self, delta: AddedText | AddedInput) -> StreamEvent:
        return BlockDelta(type="content_block_delta", index=self._last, delta=delta)

    def _stop(self) -> StreamEvent:
        return BlockStop(type="content_block_stop", index=self._last)

    @property
    def _last(self) -> int:
        """Index of the last block."""
        return len(self.content) - 1


class StopReader:
    """Reader that cuts the stop sequence off an answer's end; ``Reader``.

    Text that ends with a stop sequence is the last one: the sequence ended the generation.

    Args:
        reader: reader of the answer without the stop sequence.
        stops: the stop sequences.
    """

    def __init__(self, reader: Reader, stops: Sequence[str]) -> None:
        self._reader = reader
        self._stops = sorted(stops, key=len, reverse=True)
        self.found: str | None = None
        """Stop sequence that ended the answer; the longest, if several end there."""

    def feed(self, text: str) -> list[Part]:
        """Read more text; return the parts that are certain."""
        stop = next((stop for stop in self._stops if text.endswith(stop)), "")
        self.found = stop or self.found
        return self._reader.feed(text.removesuffix(stop))

    def end(self, cut: Collection[str]) -> list[Part]:
        """Return the remaining parts; the stop sequence that was found is cut off."""
        return self._reader.end(cut if self.found is None else (self.found,))
