"""Signals are handled after cores of OpenVINO have ended."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

TWO_CORES = """
import gc, signal
import openvino as ov
from openvino import opset13 as op
from tests.signal_stack import use_own_signal_stack

def loaded():
    x = op.parameter([1], ov.Type.f32)
    core = ov.Core()
    core.compile_model(ov.Model([op.abs(x)], [x]), "CPU")
    return core

first, second = loaded(), loaded()
del first
gc.collect()
del second
gc.collect()
use_own_signal_stack()  # without it, the signal ends the process
signal.signal(signal.SIGINT, lambda *_: print("handled"))
signal.raise_signal(signal.SIGINT)
"""


def test_a_signal_after_two_cores_is_handled() -> None:
    call = [sys.executable, "-c", TWO_CORES]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "handled\n"), done.stderr
