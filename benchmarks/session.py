"""Client of a peer's process: one request at a time over pipes."""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from other_work import OtherWork
from peer import Peer

WORKER = Path(__file__).resolve().parent / "worker.py"


class PeerMissing(Exception):
    """The peer's library is not installed in its environment."""


class PeerFailed(Exception):
    """The peer's process ended, or did not answer in time; the message is the peer's."""


class TaskRefused(Exception):
    """The peer refused a task, and waits for the next; the message is the peer's."""


@dataclass(frozen=True, slots=True)
class Place:
    """Environment of the peers.

    Args:
        models: the folder of models.
        python: the interpreter of the peers.
        our_python: the interpreter of our stack.
        threads: processors that each peer may use.
        timeout: seconds to wait for an answer.
        patience: seconds to wait for a quiet machine before a measurement.
        cache: a folder for our stack's compiled models.
    """

    models: Path
    python: str
    our_python: str
    threads: int
    timeout: float
    patience: float
    cache: Path


@dataclass(frozen=True, slots=True)
class Run:
    """Measured generation."""

    first_seconds: float
    """Seconds to the first token."""
    seconds: float
    """Seconds to the last token."""
    tokens: tuple[int, ...]
    other_work: float
    """Share of the machine that other processes used during the generation."""
    peak_rss_mb: float

    @property
    def decode_rate(self) -> float:
        """Tokens per second after the first."""
        return (len(self.tokens) - 1) / (self.seconds - self.first_seconds)


@dataclass(frozen=True, slots=True)
class Start:
    """Measured start of a process."""

    import_seconds: float
    load_seconds: float
    version: str
    peak_rss_mb: float


class Session:
    """Process of a peer with an open model.

    Args:
        peer: the peer.
        model: the model's name.
        prompt: tokens per prompt.
        new: generated tokens per prompt.
        place: environment of the process.

    Raises:
        PeerMissing, PeerFailed: the model cannot be opened.
    """

    def __init__(self, peer: Peer, model: str, prompt: int, new: int, place: Place) -> None:
        self._log: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed with the session)
        self._timeout = place.timeout
        processors = sorted(os.sched_getaffinity(0))[: place.threads]
        config = dict(peer.properties())
        environment = dict(os.environ)
        # With this variable, each start would compile all Python modules again.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        if peer.is_ours:
            config["CACHE_DIR"] = str(place.cache / "blobs")
            environment["NPU_KERNEL_CACHE_DIR"] = str(place.cache / "kernels")
        else:
            environment.pop("PYTHONPATH", None)  # names our sources
        job = {
            "module": peer.module,
            "path": str(peer.source(place.models, model)),
            "lengths": {"prompt": prompt, "new": new, "threads": place.threads},
            "config": config,
            "processors": processors,
        }
        self._process = subprocess.Popen(
            [place.our_python if peer.is_ours else place.python, WORKER, json.dumps(job)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
            text=True,
        )
        try:
            self.start = Start(**self._answer())
        except BaseException:
            self.close()
            raise

    def run(self, prompt: list[int], new: int) -> Run:
        """Generate once.

        Raises:
            PeerFailed: the generation failed.
        """
        watch = OtherWork(self._process.pid)
        answer = self._ask({"prompt": prompt, "new": new})
        return Run(
            answer["first_seconds"],
            answer["seconds"],
            tuple(answer["tokens"]),
            watch.share(),
            answer["peak_rss_mb"],
        )

    def ask(self, task: str, **arguments: Any) -> Any:
        """Call a method of the open model (``peers.pipelines``), and return its answer.

        Raises:
            TaskRefused: the method raised an error.
            PeerFailed: the process has ended.
        """
        answer = self._ask({"task": task, **arguments})
        if "refused" in answer:
            raise TaskRefused(answer["refused"].splitlines()[0])
        return answer["answer"]

    def close(self) -> None:
        """End the process."""
        self._stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stdout.close()
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _stdin(self) -> IO[str]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _stdout(self) -> IO[str]:
        assert self._process.stdout is not None
        return self._process.stdout

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        try:
            print(json.dumps(question), file=self._stdin, flush=True)
        except BrokenPipeError:
            raise PeerFailed(self._last_words()) from None
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        ready, _, _ = select.select([self._stdout], [], [], self._timeout)
        if not ready:
            self._process.kill()
            raise PeerFailed(f"no answer within {self._timeout:.0f} s")
        line = self._stdout.readline()
        if not line:
            raise PeerFailed(self._last_words())
        answer = json.loads(line)
        if "missing" in answer:
            raise PeerMissing(answer["missing"])
        if "failed" in answer:
            raise PeerFailed(answer["failed"].splitlines()[0][:200])
        return answer

    def _last_words(self) -> str:
        """Return the reason for the process's end: a signal, or the last line of standard error."""
        code = self._process.wait(30)
        self._log.seek(0)
        lines = [line for line in self._log.read().splitlines() if line.strip()]
        last = lines[-1][:200] if lines else "nothing on standard error"
        return f"ended by signal {-code}: {last}" if code < 0 else f"exit code {code}: {last}"
