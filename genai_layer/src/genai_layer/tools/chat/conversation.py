"""Messages of a chat, and the model that answers them; files with saved conversations.

A file is JSON with a list of messages. It is untrusted when it is read. When one is written, it
replaces only a saved conversation, and it is complete or unchanged.
"""

from __future__ import annotations

import os
import tempfile
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from genai_layer import ChatHistory, GenerationConfig, LLMPipeline
from genai_layer.errors import TranscriptError
from genai_layer.files import is_file
from genai_layer.results import DecodedResults
from genai_layer.streamers import Answer

_LARGEST = 64 << 20
"""Maximum size of a file, in bytes."""


class Message(BaseModel):
    """A message of a conversation."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    role: Literal["system", "user", "assistant"]
    content: str


class _Transcript(BaseModel):
    """Content of a file."""

    model_config = ConfigDict(extra="forbid")

    format: Literal["npu-chat 1"]
    messages: list[Message]


def read_transcript(path: Path) -> list[Message]:
    """Read a saved conversation.

    Raises:
        TranscriptError: the file is missing, too large, or not a saved conversation.
    """
    if not is_file(path, TranscriptError):
        raise TranscriptError(f"{path}: no such file; /save FILE writes one")
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError as error:
        raise TranscriptError(f"{path}: {error.strerror or error}") from None
    if len(content) > _LARGEST:
        raise TranscriptError(f"{path}: larger than {_LARGEST >> 20} MiB; load a smaller file")
    try:
        return _Transcript.model_validate_json(content.removeprefix(BOM_UTF8)).messages
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise TranscriptError(
            f"{path}: not a saved conversation: {f'{where}: ' if where else ''}{first['msg']}; "
            "load a file that /save wrote"
        ) from None


def write_transcript(path: Path, messages: list[Message]) -> None:
    """Write a conversation to a new file, or in place of a saved one.

    Raises:
        TranscriptError: the path names something else, or cannot be written.
    """
    if is_file(path, TranscriptError):
        _check_replaced(path)
    content = _Transcript(format="npu-chat 1", messages=messages).model_dump_json(indent=2)
    try:
        if path.exists() and not path.is_file():
            raise TranscriptError(f"{path}: not a regular file; name another")
        _replace(Path(os.path.realpath(path)), content.encode() + b"\n")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise TranscriptError(f"{path}: {reason or error}; name another file") from None


def _check_replaced(path: Path) -> None:
    try:
        read_transcript(path)
    except TranscriptError:
        raise TranscriptError(
            f"{path}: exists, and is not a saved conversation; name another file"
        ) from None


def _replace(path: Path, content: bytes) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:32]}.")
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


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
