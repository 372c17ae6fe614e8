"""Threads that use OpenVINO's real NPU plugin at once never hang, with Python and without.

A run is a process. ``NPU_THREAD_RUNS`` sets the number of runs for each number of threads.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13

from driver_layer.c_abi.build import compiler
from driver_layer.tools.npu_run import environment

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(compiler() is None, reason="needs a C compiler"),
]

HERE = Path(__file__).parent
RUNS = int(os.environ.get("NPU_THREAD_RUNS", "1"))
LIMIT_S = 60 if RUNS > 1 else 180
"""Seconds of a run; a machine that runs other tests, too, is given more."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The program in C++ and its model."""
    if not shutil.which("c++"):
        pytest.skip("no compiler of C++")
    folder = tmp_path_factory.mktemp("program")
    package = Path(ov.__file__).parent
    (library,) = (package / "libs").glob("libopenvino.so.*")
    built, model = folder / "plugin_threads", folder / "model.xml"
    line = ["c++", "-O1", "-std=c++17", "-I", package / "include", "-o", built]
    rest = [HERE / "plugin_threads.cpp", library, f"-Wl,-rpath,{library.parent}", "-pthread"]
    subprocess.run([*line, *rest], check=True, timeout=300)
    x = opset13.parameter([1, 3, 32, 32], np.float32)
    eye = opset13.constant(np.eye(32, dtype=np.float32))
    product = opset13.relu(opset13.matmul(x, eye, False, False))
    ov.save_model(ov.Model([product], [x]), model, compress_to_fp16=False)
    return [str(built), str(model)]


def check(command: list[str], threads: int) -> None:
    for _ in range(RUNS):
        done = subprocess.run(
            [*command, str(threads)],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-3000:]


@pytest.mark.matrix
@pytest.mark.parametrize("threads", [6, 2, 3, 16])
def test_threads_of_a_python_program(threads: int) -> None:
    check([sys.executable, str(HERE / "plugin_threads.py")], threads)


@pytest.mark.matrix
@pytest.mark.parametrize("threads", [6, 2, 3, 16])
def test_threads_of_a_program_in_cpp(program: list[str], threads: int) -> None:
    check([*program], threads)
