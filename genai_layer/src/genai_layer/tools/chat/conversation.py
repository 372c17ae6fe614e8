"""Messages of a chat, and the model that answers them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from genai_layer import ChatHistory, GenerationConfig, LLMPipeline
from genai_layer.results import DecodedResults
from genai_layer.streamers import Answer
from genai_layer.tools.chat.transcript import Message


class Conversation:
    """Conversation with a model.

    Args:
        pipe: the pipeline.
        config: generation parameters.
        system: system message; may be empty.
    """

    def __init__(self, pipe: LLMPipeline, config: GenerationConfig, system: str = "") -> None:
        self._pipe, self._config = pipe, config
        self._template = bool(pipe.get_tokenizer().chat_template)
        self._results: DecodedResults | None = None
        self.system = system
        """System message of the next question; may be empty."""
        self._turns: list[Message] = []

    @property
    def messages(self) -> list[Message]:
        """All messages; the system message, if there is one, is the first."""
        system = [Message(role="system", content=self.system)] if self.system else []
        return [*system, *self._turns]

    def continue_from(self, messages: list[Message]) -> None:
        """Replace all messages; a system message at the beginning replaces the present one."""
        first = messages[:1]
        has_system = bool(first) and first[0].role == "system"
        self.system = first[0].content if has_system else ""
        self._turns = messages[has_system:]

    def reset(self) -> None:
        """Forget all questions and answers; the system message stays."""
        self._turns = []

    def ask(self, question: str, show: Callable[[str], Answer]) -> None:
        """Answer a question; a text that ``show`` stopped is kept as the answer.

        Args:
            question: the user's message.
            show: receives the answer's text in parts, and may stop it.

        Raises:
            GenAIError: the generation failed; the conversation is unchanged.
        """
        turn = Message(role="user", content=question)
        asked = ChatHistory([message.model_dump() for message in (*self.messages, turn)])
        results = self._pipe.generate(asked if self._template else [question], self._config, show)
        self._results = results
        self._turns += [turn, Message(role="assistant", content=results.texts[0])]

    def statistics(self) -> str:
        """Describe the last answer as a table."""
        if self._results is None:
            return "no answer yet\n"
        return _table(self._results, self._pipe.execution_report())


def _table(results: DecodedResults, report: Mapping[str, str]) -> str:
    """Return statistics of a generation of one text as a table; the runtime's facts come first."""
    metrics = results.perf_metrics
    rows = {
        **report,
        "prompt": f"{metrics.get_num_input_tokens()} tokens",
        "generated": f"{metrics.get_num_generated_tokens()} tokens",
        "TTFT": f"{metrics.get_ttft().mean:.0f} ms",
        "speed": f"{metrics.get_throughput().mean:.1f} tokens/s",
        "finished by": results.finish_reasons[0].name,
    }
    width = max(map(len, rows))
    return "".join(f"{name:{width}}  {value}\n" for name, value in rows.items())
