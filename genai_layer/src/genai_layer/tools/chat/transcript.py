"""Files with saved conversations: JSON with a list of messages.

A file is untrusted when it is read. When one is written, it replaces only a saved conversation, and
it is complete or unchanged.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from genai_layer.errors import TranscriptError
from genai_layer.files import is_file

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
        return _Transcript.model_validate_json(content).messages
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
