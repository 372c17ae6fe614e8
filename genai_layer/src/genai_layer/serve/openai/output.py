"""Output of a response as it grows: its items, and the events that describe them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from genai_layer.serve.openai.counts import new_id
from genai_layer.serve.openai.schemas.items import (
    OutputCall,
    OutputItem,
    OutputMessage,
    OutputText,
)
from genai_layer.serve.openai.schemas.responses import (
    ArgumentsDelta,
    ArgumentsDone,
    Event,
    ItemEvent,
    PartEvent,
    TextDelta,
    TextDone,
)
from genai_layer.serve.openai.schemas.tokens import TokenLogprob
from genai_layer.serve.openai.tools.calls import Call, Part


class Output:
    """Items of a response: messages, and calls between them."""

    def __init__(self) -> None:
        self.items: list[OutputItem] = []
        self._open: OutputMessage | None = None
        self._scores: list[TokenLogprob] = []
        """Log-probabilities of tokens whose text is held back."""

    def add(self, parts: list[Part], scores: list[TokenLogprob]) -> Iterator[Event]:
        """Add parts, and yield their events.

        Args:
            parts: text and calls.
            scores: log-probabilities of the tokens; those of a call are dropped.
        """
        self._scores += scores
        for part in parts:
            if isinstance(part, Call):
                self._scores.clear()
                yield from self._end_message("completed")
                yield from self._add_call(part)
            else:
                yield from self._add_text(part)

    def end(self, status: Literal["completed", "incomplete"]) -> Iterator[Event]:
        """End the output, which has at least one item, and yield the events."""
        if not self.items:
            yield from self._add_text("")
        yield from self._end_message(status)

    def _add_text(self, text: str) -> Iterator[Event]:
        if self._open is None:
            message = OutputMessage(
                type="message",
                id=new_id("msg_"),
                role="assistant",
                status="in_progress",
                content=[],
            )
            yield self._added(message)
            part = OutputText(type="output_text", text="", annotations=[], logprobs=[])
            yield PartEvent(
                type="response.content_part.added",
                **self._place_of(message),
                part=part.model_copy(deep=True),
            )
            message.content.append(part)
            self._open = message
        part = self._open.content[0]
        scores, self._scores = self._scores, []
        part.text += text
        part.logprobs += scores
        if text:
            yield TextDelta(
                type="response.output_text.delta",
                **self._place_of(self._open),
                delta=text,
                logprobs=scores,
            )

    def _end_message(self, status: Literal["completed", "incomplete"]) -> Iterator[Event]:
        message, self._open = self._open, None
        if message is None:
            return
        part = message.content[0]
        message.status = status
        yield TextDone(
            type="response.output_text.done",
            **self._place_of(message),
            text=part.text,
            logprobs=part.logprobs,
        )
        yield PartEvent(
            type="response.content_part.done",
            **self._place_of(message),
            part=part,
        )
        yield self._done(message)

    def _add_call(self, call: Call) -> Iterator[Event]:
        item = OutputCall(
            type="function_call",
            id=new_id("fc_"),
            call_id=call.id,
            name=call.name,
            arguments="",
            status="in_progress",
        )
        yield self._added(item)
        item.arguments, item.status = call.arguments, "completed"
        yield ArgumentsDelta(
            type="response.function_call_arguments.delta",
            item_id=item.id,
            output_index=self._last,
            delta=call.arguments,
        )
        yield ArgumentsDone(
            type="response.function_call_arguments.done",
            item_id=item.id,
            output_index=self._last,
            name=call.name,
            arguments=call.arguments,
        )
        yield self._done(item)

    def _added(self, item: OutputItem) -> Event:
        """Append an item, and return its event, which later changes do not affect."""
        self.items.append(item)
        return ItemEvent(
            type="response.output_item.added",
            output_index=self._last,
            item=item.model_copy(deep=True),
        )

    def _done(self, item: OutputItem) -> Event:
        return ItemEvent(type="response.output_item.done", output_index=self._last, item=item)

    def _place_of(self, message: OutputMessage) -> dict[str, Any]:
        """Return the fields of an event that name the text of the last item."""
        return {"item_id": message.id, "output_index": self._last, "content_index": 0}

    @property
    def _last(self) -> int:
        """Index of the last item."""
        return len(self.items) - 1
