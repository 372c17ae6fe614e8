"""The loop of a chat: questions and commands in, answers out.

Keys while a model answers: Ctrl+C, and others, which wait for the next question.
"""

from __future__ import annotations

import signal
import sys
import termios
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

from genai_layer import GenAIError
from genai_layer.streamers import StreamingStatus
from genai_layer.tools.chat.commands import QUIT, obey
from genai_layer.tools.chat.conversation import Conversation
from genai_layer.tools.chat.questions import open_questions
from genai_layer.tools.chat.views import View
from genai_layer.tools.terminal import shown


class StopKey:
    """Ctrl+C as a request to stop an answer and keep its text.

    Before the first text there is nothing to keep, and a second press means that stopping takes too
    long: then KeyboardInterrupt is raised, as without this class.
    """

    def __init__(self) -> None:
        self._begun = False
        self.pressed = False
        """True if the answer is to stop."""

    def status(self) -> StreamingStatus:
        """Return the request to the generation; text has begun."""
        self._begun = True
        return StreamingStatus.STOP if self.pressed else StreamingStatus.RUNNING

    @contextmanager
    def watched(self) -> Generator[None]:
        """Handle the key in a block of the main thread."""
        before = signal.signal(signal.SIGINT, self._press)
        try:
            with _unechoed():
                yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _press(self, _: int, __: FrameType | None) -> None:
        if self.pressed or not self._begun:
            raise KeyboardInterrupt
        self.pressed = True


@contextmanager
def _unechoed() -> Generator[None]:
    """Keep the terminal from showing keys within the answer; the next question receives them."""
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    changed = [*before]
    changed[3] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSADRAIN, changed)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


_LEAVE = "Ctrl+D or /quit leaves the chat\n"


class Dialogue:
    """Dialogue of a user and a model.

    Args:
        conversation: the model, and the messages.
        make_view: creates the view of an answer.
        statistics: whether to show statistics after each answer.
    """

    def __init__(
        self, conversation: Conversation, make_view: Callable[[], View], statistics: bool
    ) -> None:
        self._conversation, self._make_view = conversation, make_view
        self._statistics = statistics

    def run(self) -> None:
        """Answer questions until they end.

        Raises:
            GenAIError: a question from a pipe cannot be answered.
        """
        questions = open_questions()
        if questions.interactive:
            sys.stdout.write("Ask a question; /help lists commands and keys.\n")
        while True:
            try:
                line = questions.next().strip()
                if line == QUIT:
                    return
                self._respond(line, questions.interactive)
            except EOFError:
                return
            except KeyboardInterrupt:
                if not questions.interactive:
                    raise
                sys.stdout.write(_LEAVE)
            except GenAIError as error:
                if not questions.interactive:
                    raise
                sys.stdout.write(shown(f"{error}\n"))

    def answer(self, question: str) -> None:
        """Answer a question; the text is streamed to the terminal.

        Raises:
            GenAIError: the generation failed; the conversation is unchanged.
        """
        self._answer(question, lambda: StreamingStatus.RUNNING)

    def _respond(self, line: str, interactive: bool) -> None:
        """Obey a command, or answer a question; raises as they do."""
        if line.startswith("/"):
            sys.stdout.write(shown(obey(self._conversation, line)))
        elif line and interactive:
            self._answer_stoppable(line)
        elif line:
            self.answer(line)

    def _answer_stoppable(self, question: str) -> None:
        """Answer a question, until Ctrl+C stops the answer."""
        key = StopKey()
        before = len(self._conversation.messages)
        try:
            with key.watched():
                self._answer(question, key.status)
        except KeyboardInterrupt:
            if len(self._conversation.messages) == before:
                sys.stdout.write("interrupted; the question is not part of the conversation\n")

    def _answer(self, question: str, status: Callable[[], StreamingStatus]) -> None:
        view = self._make_view()

        def show(text: str) -> StreamingStatus:
            view.show(text)
            return status()

        try:
            self._conversation.ask(question, show)
        except BaseException:
            view.end(failed=True)
            raise
        view.end()
        if self._statistics:
            sys.stdout.write("\n" + self._conversation.statistics())
