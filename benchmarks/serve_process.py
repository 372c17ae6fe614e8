"""A server as a process of its own, on a free port of the loopback interface."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Self

_PAGE, _TICKS = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    """Return a port that nobody uses."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class ServerProcess:
    """Process that serves.

    Args:
        command: the command line.
        port: the port on which it listens.
        ready: path that answers 200 once the server is ready.
        log: receives the output, unless ``output`` does.
        output: file descriptor that receives the output.
        handles: number of files and sockets that the process may open, if it is another one.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        port: int,
        ready: str,
        log: Path,
        output: int | None = None,
        handles: int | None = None,
    ) -> None:
        limit = [] if handles is None else ["sh", "-c", f'ulimit -n {handles}; exec "$@"', "sh"]
        self.port, self.log = port, log
        self._ready = ready
        with log.open("ab") as file:
            self.process = subprocess.Popen(
                [str(word) for word in [*limit, *command]],
                stdin=subprocess.DEVNULL,
                stdout=file if output is None else output,
                stderr=subprocess.STDOUT,
            )

    def get(self, path: str) -> str:
        """Return the body of a page.

        Raises:
            OSError: there is no answer, or its status is not 200.
        """
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as answer:
            return answer.read().decode()

    def wait_until_ready(self, seconds: float = 300) -> None:
        """Wait until the server is ready.

        Raises:
            RuntimeError: it ended, or is not ready in time.
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended: {self.log.read_text()}")
            try:
                self.get(self._ready)
            except (OSError, urllib.error.URLError):
                time.sleep(0.05)
            else:
                return
        raise RuntimeError(f"the server is not ready after {seconds} s: {self.log.read_text()}")

    def memory(self) -> int:
        """Return the resident bytes of the process."""
        words = Path(f"/proc/{self.process.pid}/statm").read_text().split()
        return int(words[1]) * _PAGE

    def peak_memory(self) -> int:
        """Return the largest number of resident bytes since the process began."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        (peak,) = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
        return int(peak) << 10

    def processor_seconds(self) -> float:
        """Return the seconds that the process used a processor, in all its threads."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / _TICKS

    def stop(self, signal: int, seconds: float = 60) -> int:
        """Send a signal, and return the process's exit code."""
        self.process.send_signal(signal)
        return self.process.wait(seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
