"""First token of six turns of a chat."""

from __future__ import annotations

from sweep.figures import Table, beside_previous
from sweep.subject import Subject

TURNS, ANSWER = 6, 16


def sweep(subject: Subject) -> Table:
    """Measure chats of questions of one length."""
    chats = [
        {"questions": [_question(chat, turn) for turn in range(TURNS)], "new": ANSWER}
        for chat in range(subject.effort.rounds)
    ]
    settings = [f"turn {turn + 1}" for turn in range(TURNS)]
    return Table(
        "Turns of a chat",
        "Time to the first token of each turn (`start_chat`): questions of one length, answers of "
        f"{ANSWER} tokens. Neighbour: the previous turn.",
        ("first token",),
        beside_previous(subject.measure(settings, "chat", *chats)),
    )


def _question(chat: int, turn: int) -> str:
    """Return a question that begins as no other does, so that no chat continues another."""
    return f"{chat}{turn} is the number of this question. What is an NPU, and what is it for?"
