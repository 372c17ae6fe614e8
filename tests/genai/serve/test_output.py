"""Output: no reader of lines and no flood of records stops the server."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Generator
from typing import Any

import pytest

from genai_layer.serve import output as module
from genai_layer.serve.output import Output, Throttle, logging_to


class Stream:
    """Stream whose reader has gone, or reads no more until ``reads`` is set."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.text = error, ""
        self.reads = threading.Event()

    def write(self, text: str) -> None:
        if self.error is not None:
            raise self.error
        self.reads.wait()
        self.text += text

    def flush(self) -> None: ...


@contextlib.contextmanager
def logging_alone(output: Output, *flooded: str) -> Generator[None]:
    """Log as a process does that has no NPU_LOG."""
    kept, logging.root.handlers = logging.root.handlers, []
    with logging_to(output, *flooded):
        yield
    logging.root.handlers = kept


@pytest.mark.parametrize(
    "error", [BrokenPipeError(), OSError(errno.ENOSPC, "full"), ValueError("closed file")]
)
def test_a_line_that_cannot_be_written_is_lost(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    output = Output()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Stream(error))
        output.show("lost")
    output.show("shown")
    output.close()
    assert capsys.readouterr().out == "shown\n"


def test_a_reader_that_has_gone_does_not_change_the_exit_code() -> None:
    reader, pipe = os.pipe()
    os.close(reader)
    program = (
        "from genai_layer.serve.output import Output; output = Output()\n"
        "for line in range(9): output.show(line)\n"
        "output.close()"
    )
    with open(pipe, "w") as output:
        assert subprocess.run([sys.executable, "-I", "-c", program], stdout=output).returncode == 0


def test_a_process_without_stdout_writes_the_log() -> None:
    program = (
        "from genai_layer.serve.output import Output; output = Output()\n"
        "output.show('lost'); output.warn('shown'); output.close()"
    )
    begin = ["sh", "-c", 'exec "$0" -I -c "$1" >&-', sys.executable, program]
    done = subprocess.run(begin, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "shown\n")


def test_a_reader_that_stops_does_not_stop_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream()
    monkeypatch.setattr(sys, "stderr", stream)
    output = Output()
    with logging_alone(output):
        for number in range(3000):
            output.warn(f"line {number}")
            logging.getLogger("any").warning("record")
    with monkeypatch.context() as patch:
        patch.setattr(module, "_PATIENCE", 0.01)
        output.close()
    stream.reads.set()
    output.close()
    assert stream.text.startswith("line 0\nrecord\nline 1\n")
    assert len(stream.text.splitlines()) <= 1002


def test_records_that_clients_cause_are_one_a_minute(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    output = Output()
    with logging_alone(output, "flooded"):
        for second in range(130):
            now[0] = float(second)
            logging.getLogger("flooded").warning("connection %d is lost", second)
            logging.getLogger("flooded").warning("another kind\nof %d lines", second)
        logging.getLogger("calm").warning("each")
        logging.getLogger("calm").warning("each")
        logging.getLogger("calm").info("not asked for")
    output.close()
    lines = [line for line in capsys.readouterr().err.splitlines() if "lines" not in line]
    lost = [f"connection {second} is lost" for second in (0, 60, 120)]
    assert sorted(lines) == sorted([*lost, *["another kind"] * 3, "each", "each"])


def test_a_defect_has_one_stack_a_minute_for_each_place(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    places: list[Any] = [
        lambda: {}["one"],
        lambda: [][1],
    ]
    output = Output()
    with logging_alone(output):
        for request in range(130):
            now[0] = float(request)
            for place in places:
                try:
                    place()
                except LookupError:
                    logging.getLogger("any").exception("request %d failed", request)
    output.close()
    text = capsys.readouterr().err
    assert text.count("Traceback") == 6
    heads = [line for line in text.splitlines() if line.startswith("request")]
    ends = ("0 failed", "60 failed (and 59 times before)", "120 failed (and 59 times before)")
    assert heads == [f"request {end}" for end in ends for _ in places]


def test_a_connection_without_a_file_handle_is_one_line() -> None:
    def record() -> Any:
        try:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        except OSError:
            return logging.LogRecord("asyncio", 40, "", 0, "socket.accept() …", (), sys.exc_info())

    throttle, first = Throttle(()), record()
    assert throttle.filter(first)
    line = logging.Formatter().format(first)
    assert line == "no connection is accepted: Too many open files; raise ulimit -n"
    assert not throttle.filter(record())
