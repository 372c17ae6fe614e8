"""Ctrl-C reaches a program that uses OpenVINO's real NPU plugin as KeyboardInterrupt, whenever."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from driver_layer.c_abi.build import compiler
from driver_layer.tools.npu_run import environment

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(compiler() is None, reason="needs a C compiler"),
]

PROGRAM = Path(__file__).with_name("plugin_interrupts.py")
TURNS = int(os.environ.get("NPU_INTERRUPT_TURNS", "20"))


def caught(phase: str, count: int) -> int:
    done = subprocess.run(
        [sys.executable, PROGRAM, phase, str(count)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return int(done.stdout)


@pytest.mark.parametrize("phase", ["infer", "asynchronous", "compile"])
def test_an_interrupt_in_any_moment_reaches_the_program(phase: str) -> None:
    assert caught(phase, TURNS) == TURNS


@pytest.mark.matrix
@pytest.mark.parametrize("milliseconds", [100, 20, 300, 500, 800])
def test_an_interrupt_while_the_driver_starts_reaches_the_program(milliseconds: int) -> None:
    assert caught("start", milliseconds) == 1
