"""Model under test: our stack in a process, and OpenVINO GenAI in another."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from measure import say
from models import draw_prompts
from peer import Peer
from session import PeerFailed, PeerMissing, Place, Session, TaskRefused

from sweep.figures import Figure

PROMPT, RESPONSE = 1024, 128
"""Lengths of a pipeline at default options."""


@dataclass(frozen=True, slots=True)
class Effort:
    """Extent of the measurements."""

    rounds: int
    """Repetitions of which the shortest counts."""
    options: dict[str, str]
    """Options that all models of the sweep of options have, beside the one under test."""
    prompt: int
    """Tokens of the prompt in that sweep."""
    again: int
    """Times as many rounds for its marked figures, as other programs on the machine may have caused
    them."""


FULL = Effort(3, {}, 512, 4)
BRIEF = Effort(2, {"NPUW_LLM_MAX_PROMPT_LEN": "128", "NPUW_LLM_PREFILL_CHUNK_SIZE": "64"}, 100, 4)
"""Extent for a minute: chunked prompts, and few static models."""


@dataclass(frozen=True)
class FolderPeer(Peer):
    """Peer that reads one folder, whatever the layout of a models' folder."""

    folder: Path = field(default=Path(), hash=False)

    def source(self, models: Path, model: str) -> Path:
        """Return the folder."""
        return self.folder


class Subject:
    """One model, open in a process of ours and, if it is an IR, in one of OpenVINO GenAI.

    Args:
        folder: the model's folder.
        place: environment of the processes.
        effort: extent of the measurements.
    """

    def __init__(self, folder: Path, place: Place, effort: Effort) -> None:
        self.folder, self.place, self.effort = folder, place, effort
        self._opened = ExitStack()
        self._ours = self._open("ours")
        self._other = self._open_other()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    @property
    def versions(self) -> list[str]:
        """Versions of the measured stacks."""
        other = [f"OpenVINO GenAI {self._other.start.version}"] if self._other else []
        return [f"ours {self._ours.start.version}", *other]

    def prompts(self, tokens: int, count: int) -> list[list[int]]:
        """Return different random prompts."""
        return draw_prompts(self.folder, tokens, count, seed=tokens)

    def measure(self, settings: Sequence[str], task: str, *rounds: dict[str, Any]) -> list[Figure]:
        """Return figures of a task that measures all of some settings at once, or refuses them.

        Args:
            settings: names of the settings, in the order of the task's answer.
            task: name of a method of ``peers.pipelines``.
            rounds: arguments of each round.
        """
        try:
            ours, other = self._take_turns(task, rounds)
        except TaskRefused as error:
            return [Figure(setting, refused=str(error)) for setting in settings]
        return [
            Figure(setting, (min(mine),), peer=_paired(mine, theirs))
            for setting, mine, theirs in zip(settings, ours, other, strict=True)
        ]

    def _take_turns(
        self, task: str, rounds: Sequence[dict[str, Any]]
    ) -> tuple[list[list[float]], list[list[float]]]:
        """Return our times and OpenVINO's, by setting and round, after one to warm up."""
        ours: list[list[float]] = []
        other: list[list[float]] = []
        for arguments in (rounds[-1], *rounds):  # not the same prompt twice in succession
            ours.append(self._ours.ask(task, **arguments))
            other.append(self._ask_other(task, arguments))
        return _by_setting(ours[1:]), _by_setting(other[1:]) or [[] for _ in ours[0]]

    def _ask_other(self, task: str, arguments: dict[str, Any]) -> list[float]:
        try:
            return self._other.ask(task, **arguments) if self._other else []
        except TaskRefused:
            return []

    def _open(self, kind: str) -> Session:
        peer = FolderPeer(kind, "fp16", folder=self.folder)
        session = Session(peer, self.folder.name, PROMPT, RESPONSE, self.place)
        self._opened.callback(session.close)
        return session

    def _open_other(self) -> Session | None:
        if not (self.folder / "openvino_model.xml").is_file():
            return None
        try:
            return self._open("openvino")
        except (PeerMissing, PeerFailed) as error:
            say(f"not compared to OpenVINO GenAI: {error}")
            return None


def _by_setting(rounds: Sequence[Sequence[float]]) -> list[list[float]]:
    return [list(times) for times in zip(*rounds, strict=True)]


def _paired(ours: Sequence[float], other: Sequence[float]) -> float | None:
    """Return the median ratio of rounds; None without the other's times."""
    ratios = [mine / theirs for mine, theirs in zip(ours, other, strict=True)] if other else []
    return statistics.median(ratios) if ratios else None
