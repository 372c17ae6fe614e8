"""The tool npu-run: the environment of a program, and the check of an installation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from driver_layer.c_abi.build import LOADER, compiler
from driver_layer.tools import npu_run

pytestmark = pytest.mark.skipif(compiler() is None, reason="needs a C compiler")

PLATFORM = (
    "import ctypes; npu = ctypes.CDLL('libze_loader.so.1'); print(hex(npu.zeInit(0) & 0xffffffff))"
)


def run(*words: str) -> subprocess.CompletedProcess[str]:
    tool = "import sys; from driver_layer.tools.npu_run import main; sys.exit(main(sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-c", tool, *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_program_finds_the_library_by_its_name_and_keeps_its_exit_code() -> None:
    done = run("--platform", "3720", "--", sys.executable, "-c", f"{PLATFORM}; raise SystemExit(7)")
    assert (done.returncode, done.stdout) == (7, "0x0\n"), done.stderr


def test_the_environment_adds_to_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/else")
    variables = npu_run.environment("5010", log_calls=True)
    ours, other = variables["LD_LIBRARY_PATH"].split(os.pathsep)
    assert Path(ours, LOADER).is_file()
    assert other == "/else"
    assert variables["ZE_INTEL_NPU_PLATFORM_OVERRIDE"] == "5010"
    assert variables["NPU_LOG_CALLS"] == "1"
    assert set(variables) - set(os.environ) <= {"ZE_INTEL_NPU_PLATFORM_OVERRIDE", "NPU_LOG_CALLS"}


def test_wrong_words_are_reported_before_anything_runs() -> None:
    for words, problem in (
        (["--platform", "286", "--", "true"], "286"),
        (["--", "no-such-program"], "no such program"),
        (["--log-calls"], "no program given"),
    ):
        done = run(*words)
        assert done.returncode == 2
        assert problem in done.stderr
        assert "Traceback" not in done.stderr


def test_the_check_names_what_is_there_and_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    def nothing(_: str) -> str:
        raise npu_run.PackageNotFoundError

    monkeypatch.setattr(npu_run, "version", nothing)
    assert npu_run.main(["--check"]) == 1
    printed = capsys.readouterr().out
    assert "ok      C compiler" in printed
    assert "MISSING openvino" in printed
    assert "pip install openvino" in printed
