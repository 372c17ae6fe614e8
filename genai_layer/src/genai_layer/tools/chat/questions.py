"""Questions of a user: typed at a terminal, or lines of a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from genai_layer.tools.chat.commands import COMMANDS, QUIT

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent


class Questions(Protocol):
    """Source of questions."""

    interactive: bool
    """True if a user types them, who may try again after an error."""

    def next(self) -> str:
        """Return the next question, of one or more lines.

        Raises:
            EOFError: there are no more.
            KeyboardInterrupt: the user discarded what was typed.
        """
        ...


def open_questions() -> Questions:
    """Return the source: the terminal if input and output are one, else the lines of stdin."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        return TypedQuestions()
    return PipedQuestions()


class PipedQuestions:
    """Lines of stdin."""

    interactive = False

    def __init__(self) -> None:
        self._lines: Iterator[str] = iter(sys.stdin)

    def next(self) -> str:
        """Return the next line; raises EOFError."""
        line = next(self._lines, None)
        if line is None:
            raise EOFError
        return line


class TypedQuestions:
    """Questions typed at a terminal, with a history over sessions, and completion of commands."""

    interactive = True

    def __init__(self) -> None:
        # Imported here: nothing else needs prompt_toolkit.
        from prompt_toolkit import PromptSession
        from prompt_toolkit.shortcuts import CompleteStyle

        self._session: PromptSession[str] = PromptSession(
            history=_history(),
            completer=_completer(),
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            key_bindings=_keys(),
            multiline=True,
            prompt_continuation="  ",
        )

    def next(self) -> str:
        """Return the next question; raises as ``Questions.next``."""
        return self._session.prompt("> ")


def history_file() -> Path:
    """Return the file with the questions of earlier sessions.

    Source: https://specifications.freedesktop.org/basedir-spec/latest/, XDG_STATE_HOME.
    """
    state = os.environ.get("XDG_STATE_HOME", "")
    base = Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state"
    return base / "npu-chat" / "history"


def _history() -> History:
    """Return the history; if its file is not accessible, that of this session."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    class KeptHistory(FileHistory):
        """History that goes on if the disk is full."""

        def store_string(self, string: str) -> None:
            with suppress(OSError):
                super().store_string(string)

    try:
        path = history_file()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o600))
        if path.is_file():
            return KeptHistory(path)
    except (OSError, RuntimeError, ValueError):
        pass
    return InMemoryHistory()


def _completer() -> Completer:
    """Return the completion of commands, and of the files that are their arguments."""
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
    from prompt_toolkit.document import Document

    files = PathCompleter(expanduser=True)
    names = (*COMMANDS, QUIT)

    class CommandCompleter(Completer):
        def get_completions(
            self, document: Document, complete_event: CompleteEvent
        ) -> Iterator[Completion]:
            before = document.text_before_cursor
            name, space, argument = before.partition(" ")
            if space and name in COMMANDS and COMMANDS[name].argument == "FILE":
                yield from files.get_completions(Document(argument), complete_event)
            elif before.startswith("/") and not space:
                found = (each for each in names if each.startswith(before))
                yield from (Completion(f"{each} ", -len(before)) for each in found)

    return CommandCompleter()


def _keys() -> KeyBindings:
    """Return the keys: Enter ends the question unless a backslash precedes it."""
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    def end(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.char_before_cursor == "\\" and buffer.document.is_cursor_at_the_end:
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    def break_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    keys.add("enter")(end)
    keys.add("escape", "enter")(break_line)
    return keys
