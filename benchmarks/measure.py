"""Measurement of one scenario: fresh starts of every peer, then rounds in which all take turns."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from machine import available_bytes
from model_facts import read_facts, weight_bytes
from models import draw_prompts, how_to_make, is_there
from other_work import wait_for_quiet
from peer import Peer
from results import PeerResult, Scenario, ScenarioResult
from session import PeerFailed, PeerMissing, Place, Session, Start

WARM_UP = 8
"""Number of tokens generated before measuring."""

_USABLE = 0.85
"""Share of the available memory that open peers may take."""


class Measurement:
    """Measurement of one scenario.

    Args:
        scenario: the model and the lengths.
        peers: the peers to measure.
        place: environment of the peers; its cache is used by this measurement only.
        rounds: generations of each peer.
        starts: fresh processes of each peer.
    """

    def __init__(
        self, scenario: Scenario, peers: list[Peer], place: Place, rounds: int, starts: int
    ) -> None:
        folder = place.models / scenario.model
        self._scenario = scenario
        self._place = place
        self._rounds = rounds
        self._starts = starts
        self._prompts = draw_prompts(folder, scenario.prompt, rounds + 1, seed=scenario.prompt)
        self.result = ScenarioResult(scenario, read_facts(folder), [PeerResult(p) for p in peers])

    def run(self) -> ScenarioResult:
        """Run all starts and rounds."""
        for result in self.result.peers:
            self._look(result)
        for source in {self._source(result) for result in self._present()}:
            _drop_pages(source)
            _read_into_memory(source)
        for repetition in range(self._starts):
            for result in self._present():
                self._attempt(result, partial(self._start, repetition=repetition))
        self._take_turns()
        return self.result

    def _present(self) -> list[PeerResult]:
        return [result for result in self.result.peers if not result.absent]

    def _look(self, result: PeerResult) -> None:
        peer, models, model = result.peer, self._place.models, self._scenario.model
        source = self._source(result)
        if is_there(peer, models, model):
            result.weight_bytes = weight_bytes(peer, source, self.result.facts)
        else:
            result.absent = f"no {source}; create it: {how_to_make(peer, models, model)}"
            result.absent = self._without_machine_paths(result.absent)

    def _source(self, result: PeerResult) -> Path:
        return result.peer.source(self._place.models, self._scenario.model)

    def _attempt(self, result: PeerResult, action: Callable[[PeerResult], None]) -> None:
        try:
            action(result)
        except PeerMissing as missing:
            result.absent = f"not installed: {missing}"
        except PeerFailed as failure:
            result.absent = self._without_machine_paths(f"failed: {failure}")
        if result.absent:
            say(f"{result.peer.name}: {result.absent}")

    def _without_machine_paths(self, text: str) -> str:
        """Replace paths of this machine in a text for the report."""
        return text.replace(str(self._place.models), "MODELS")

    def _open(self, peer: Peer, cache: Path | None = None) -> Session:
        place = self._place if cache is None else replace(self._place, cache=cache)
        scenario = self._scenario
        return Session(peer, scenario.model, scenario.prompt, scenario.new, place)

    def _start(self, result: PeerResult, repetition: int) -> None:
        """Open and close in a fresh process; ours with an empty cache, then with a filled one."""
        _read_into_memory(self._source(result))
        if not result.peer.is_ours:
            result.starts[repetition] = self._start_once(result.peer, None)
        else:
            with tempfile.TemporaryDirectory(prefix="bench-") as cache:
                result.starts[repetition] = self._start_once(result.peer, Path(cache))
                result.warm_starts[repetition] = self._start_once(result.peer, Path(cache))
        found = result.starts[repetition]
        say(f"{result.peer.name}: load {found.load_seconds:.2f} s, {found.peak_rss_mb:.0f} MB")

    def _start_once(self, peer: Peer, cache: Path | None) -> Start:
        """Return a process's start, with the peak of memory after a prompt."""
        wait_for_quiet(self._place.patience)
        with self._open(peer, cache) as session:
            run = session.run(self._prompts[0], WARM_UP)
            return replace(session.start, peak_rss_mb=run.peak_rss_mb)

    def _open_warm(self, result: PeerResult) -> Session:
        session = self._open(result.peer)
        try:
            session.run(self._prompts[0], WARM_UP)
        except BaseException:
            session.close()
            raise
        return session

    def _take_turns(self) -> None:
        present = self._present()
        peaks = {r.peer.name: _peak_bytes(r) for r in present}
        kept = plan_residents(peaks, available_bytes() * _USABLE)
        sessions: dict[str, Session] = {}

        def open_and_keep(result: PeerResult) -> None:
            sessions[result.peer.name] = self._open_warm(result)

        try:
            for result in present:
                result.reloaded = result.peer.name not in kept
                if not result.reloaded:
                    self._attempt(result, open_and_keep)
            for number, prompt in enumerate(self._prompts[1:]):
                for result in self._present():
                    turn = partial(self._run, number=number, prompt=prompt, sessions=sessions)
                    self._attempt(result, turn)
        finally:
            for session in sessions.values():
                session.close()

    def _run(
        self, result: PeerResult, number: int, prompt: list[int], sessions: dict[str, Session]
    ) -> None:
        name = result.peer.name
        session = sessions.get(name) or self._open_warm(result)
        wait_for_quiet(self._place.patience)
        try:
            run = session.run(prompt, self._scenario.new)
        finally:
            if name not in sessions:
                session.close()
        result.runs[number] = run
        say(
            f"{name}: round {number + 1}: {1e3 * run.first_seconds:.0f} ms, "
            f"{run.decode_rate:.1f} tokens/s, others {run.other_work:.0%}"
        )


def plan_residents(peaks: dict[str, float], budget: float) -> set[str]:
    """Return the peers that stay open, so that any other can be opened in addition.

    Args:
        peaks: bytes of each peer.
        budget: bytes of all peers together.
    """
    ascending = sorted(peaks, key=lambda name: peaks[name])
    total = sum(peaks.values())
    if total <= budget:
        return set(ascending)
    kept: set[str] = set()
    used = 0.0
    largest = peaks[ascending[-1]]
    for name in ascending[:-1]:
        if used + peaks[name] + largest > budget:
            break
        kept.add(name)
        used += peaks[name]
    return kept


def _peak_bytes(result: PeerResult) -> float:
    starts = [*result.starts.values(), *result.warm_starts.values()]
    return max((start.peak_rss_mb for start in starts), default=0.0) * 1e6


def _drop_pages(source: Path) -> None:
    """Drop a model's files from the page cache.

    Files read long ago, or in parts, are stored in scattered small pages; a process that maps them
    decodes up to a fifth slower than from files that were just read in order. So all are dropped.
    """
    for path in _files(source):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _read_into_memory(source: Path) -> None:
    """Read a model's files, so that no start waits for the disk."""
    for path in _files(source):
        with path.open("rb", buffering=0) as file:
            while file.read(1 << 24):
                pass


def _files(source: Path) -> list[Path]:
    files = sorted(source.iterdir()) if source.is_dir() else [source]
    return [path for path in files if path.is_file()]


def say(text: str) -> None:
    """Print the progress."""
    print(f"  {text}", file=sys.stderr, flush=True)
