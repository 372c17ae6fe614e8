"""The command line of npu-serve, and the address on which it listens."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from genai_layer.serve.run import RequestThreads
from genai_layer.tools.serve import main

_WITHOUT = """
import sys
sys.modules["fastapi"] = None
from genai_layer.tools.serve import main
sys.exit(main([sys.argv[1]]))
"""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "toy=/nowhere/toy"], "model toy: /nowhere/toy is no folder"),
        (["--model", "same={toy}", "--rerank-model", "same={toy}"], "model same: given twice"),
        (["-c", "A=1", "-c", "A=2"], "-c A: given twice; leave one out"),
        (["--host", "no.such.host.invalid"], "--host no.such.host.invalid --port 8000: "),
    ],
)
def test_errors_are_one_line(
    toy: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert main([str(toy), *(one.format(toy=toy) for one in options)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"npu-serve: {message}")


@pytest.mark.parametrize(
    "options",
    [
        ["--model", "toy"],
        ["--embedding-model", "=toy"],
        ["--max-body", "4X"],
        ["--max-bytes", "-1"],
        ["--slots", "9"],
        ["--timeout", "0"],
        ["--max-connections", "0"],
        ["--host", "http://a.example"],
        ["--allow-host", "a.example:80"],
        ["--cors-origin", "https://a.example/"],
    ],
)
def test_wrong_options_are_usage_errors(toy: Path, options: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([str(toy), *options])
    assert caught.value.code == 2


def test_a_port_in_use_is_named(toy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main([str(toy), "--port", port]) == 2
    assert f"--port {port}: Address already in use; choose another" in capsys.readouterr().err


def test_a_model_that_cannot_be_loaded_ends_the_server(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "genai_layer.tools.serve", str(tmp_path), "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith(f"npu-serve: model '{tmp_path.name}' cannot be loaded: ")
    assert len(done.stderr.splitlines()) == 1


def test_without_the_extra_one_line_names_it(toy: Path) -> None:
    command = [sys.executable, "-c", _WITHOUT, str(toy)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    line = 'the package fastapi is not installed; pip install "./genai_layer[serve]"\n'
    assert (done.returncode, done.stderr) == (2, f"npu-serve: {line}")


def test_a_thread_that_still_works_does_not_hold_the_server() -> None:
    ended = threading.Event()
    threads = RequestThreads(1)
    threads.submit(ended.wait, 30)
    threads.shutdown(wait=True)
    assert not ended.is_set()
    ended.set()
