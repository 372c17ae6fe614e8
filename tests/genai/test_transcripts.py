"""Saved conversations: files are untrusted when read, and replaced only by their like."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from genai_layer.errors import TranscriptError
from genai_layer.tools.chat.conversation import Message, read_transcript, write_transcript

MESSAGES = [Message(role="user", content="Straße\n"), Message(role="assistant", content="ok")]


def test_a_saved_conversation_is_read_again_and_may_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "chat.json"
    write_transcript(path, MESSAGES)
    write_transcript(path, MESSAGES[:1])
    assert read_transcript(path) == MESSAGES[:1]
    assert os.listdir(tmp_path) == ["chat.json"]
    link = tmp_path / "link"
    link.symlink_to(path)
    write_transcript(link, MESSAGES)
    assert link.is_symlink()
    assert read_transcript(path) == MESSAGES


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        b'{"messages": []}',
        b'{"format": "npu-chat 2", "messages": []}',
        b'{"format": "npu-chat 1", "messages": [{"role": "tool", "content": ""}]}',
        b'{"format": "npu-chat 1", "messages": [{"role": "user", "content": 1}]}',
        b'{"format": "npu-chat 1", "messages": [{"role": "user", "content": "\\ud800"}]}',
        b'{"format": "npu-chat 1", "messages": [], "more": 1}',
    ],
)
def test_another_file_is_neither_read_nor_replaced(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(TranscriptError, match=r"file: not a saved conversation: .*; load a file"):
        read_transcript(path)
    with pytest.raises(TranscriptError, match="exists, and is not a saved conversation; name"):
        write_transcript(path, MESSAGES)
    assert path.read_bytes() == content


def test_only_regular_files_are_accessed(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, tmp_path / "missing", tmp_path / ("x" * 300)):
        with pytest.raises(TranscriptError):
            read_transcript(path)
    for path in (pipe, tmp_path, tmp_path / "none/file", tmp_path / ("x" * 300)):
        with pytest.raises(TranscriptError):
            write_transcript(path, MESSAGES)


def test_a_failed_write_leaves_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "chat.json"
    write_transcript(path, MESSAGES)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(TranscriptError, match="No space left"):
        write_transcript(path, [])
    assert read_transcript(path) == MESSAGES
    assert os.listdir(tmp_path) == ["chat.json"]
