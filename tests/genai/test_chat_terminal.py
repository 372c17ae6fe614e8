"""npu-chat on a terminal: keys, commands, history and Markdown, with the in-memory runtime."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.terminals import CTRL_C, CTRL_D, Terminal

CHAT = """
import os, sys, time
import genai_layer.tools.pipeline_options as options
from genai_layer.testing.memory_runtime import MemoryRequest
from genai_layer.testing.toy import answering_core
from genai_layer.tools.chat import main

answer, delay, marker, *argv = sys.argv[1:]
infer = MemoryRequest.infer
def slow(self, inputs):
    os.write(2, marker.encode())
    time.sleep(float(delay))
    return infer(self, inputs)
MemoryRequest.infer = slow
options.load_core = lambda _: answering_core(answer)
sys.exit(main(argv))
"""
"""npu-chat with a model that gives one answer, with a marker and a pause before each token."""

ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"

Chat = Callable[..., Terminal]


@pytest.fixture
def chat(folder: Path, tmp_path: Path) -> Chat:
    """Return a function that starts npu-chat; its sessions share a history."""

    def start(answer: str, *argv: str, delay: float = 0.0, marker: str = "") -> Terminal:
        command = [sys.executable, "-c", CHAT, answer, str(delay), marker, str(folder), *argv]
        return Terminal(command, {"XDG_STATE_HOME": str(tmp_path / "state")})

    return start


def saved(terminal: Terminal, path: Path) -> list[dict[str, str]]:
    terminal.send(f"/save {path}\r")
    terminal.expect("messages saved")
    return json.loads(path.read_text())["messages"]


def test_markdown_is_rendered_unless_plain_text_is_requested(chat: Chat) -> None:
    for argv, shown in (([], "• item"), (["--plain"], "- item")):
        with chat("- item", *argv) as terminal:
            terminal.expect(">")
            terminal.send("list\r")
            terminal.expect(shown)
            terminal.expect(">")
            terminal.send(CTRL_D)
            assert terminal.end() == 0


def test_ctrl_c_stops_the_answer_and_its_text_stays_in_the_conversation(
    chat: Chat, tmp_path: Path
) -> None:
    with chat(ALPHABET, "--plain", delay=0.1) as terminal:
        terminal.expect(">")
        terminal.send("spell\r")
        terminal.expect("abc")
        terminal.send(CTRL_C)
        rest = terminal.expect("\r\n")
        terminal.expect(">")
        messages = saved(terminal, tmp_path / "chat.json")
    assert messages == [
        {"role": "user", "content": "spell"},
        {"role": "assistant", "content": f"abc{rest}"},
    ]
    assert len(rest) < 20


def test_ctrl_c_before_any_text_drops_the_question_and_at_the_prompt_leaves_nothing(
    chat: Chat, tmp_path: Path
) -> None:
    with chat("ok", delay=1.5, marker="<infer>") as terminal:
        terminal.expect(">")
        terminal.send("half a quest" + CTRL_C)
        terminal.expect("leaves the chat")
        terminal.send("question\r")
        terminal.expect("<infer>")
        terminal.send(CTRL_C)
        terminal.expect("interrupted; the question is not part of the conversation")
        assert saved(terminal, tmp_path / "chat.json") == []
        terminal.send("again\r")
        terminal.expect("ok")
        assert len(saved(terminal, tmp_path / "chat.json")) == 2


def test_questions_have_several_lines_and_a_history_over_sessions(
    chat: Chat, tmp_path: Path
) -> None:
    with chat("ok") as terminal:
        terminal.expect(">")
        terminal.send("one\\\rtwo\x1b\rthree\r")
        terminal.expect("ok")
        terminal.expect(">")
        messages = saved(terminal, tmp_path / "chat.json")
        terminal.send("/quit\r")
        assert terminal.end() == 0
    assert messages[0]["content"] == "one\ntwo\nthree"
    assert (tmp_path / "state/npu-chat/history").stat().st_mode & 0o777 == 0o600
    with chat("ok") as terminal:
        terminal.expect(">")
        terminal.send("\x1b[A\x1b[A\x1b[A")
        terminal.expect("one")
        terminal.expect("three")


def test_the_tab_key_completes_commands_and_files(chat: Chat, tmp_path: Path) -> None:
    with chat("ok") as terminal:
        terminal.expect(">")
        terminal.send(f"/sa\t{tmp_path}/tokenizer.j\t\r")
        terminal.expect("tokenizer.json: exists, and is not a saved conversation; name another")


def test_a_question_that_is_too_long_does_not_end_a_chat(chat: Chat) -> None:
    with chat("ok", "-c", "MAX_PROMPT_LEN=64") as terminal:
        terminal.expect(">")
        terminal.send("x" * 70 + "\r")
        terminal.expect("MAX_PROMPT_LEN=64: the prompt has")
        terminal.send("short\r")
        terminal.expect("ok")
