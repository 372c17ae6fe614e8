"""Processes that load the library: with and without Python, interrupted, ending."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from tests.driver.c_abi.cpp_program import BLOB, run_program

from driver_layer.testing.blobs import COLS, DEPTH, ROWS, dense_blob, is_expected

START = """
import ctypes, sys
npu = ctypes.CDLL(sys.argv[1])
for name in ("zeInit", "zeDriverGet", "zeDeviceGet", "zeContextCreate", "zeContextDestroy"):
    getattr(npu, name).restype = ctypes.c_uint32
one, driver = ctypes.c_uint32(1), ctypes.c_void_p()
"""
CONTEXT = (
    START
    + """
assert npu.zeInit(0) == 0
assert npu.zeDriverGet(ctypes.byref(one), ctypes.byref(driver)) == 0
desc = (ctypes.c_uint64 * 3)(0xd)
context = ctypes.c_void_p()
assert npu.zeContextCreate(driver, desc, ctypes.byref(context)) == 0
"""
)


def run(
    code: str, built: Path, *options: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a script in a Python of its own, with the library's path as its argument."""
    return subprocess.run(
        [sys.executable, *options, "-c", code, built / "loader" / "libze_loader.so.1"],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_program_without_python_runs_a_blob_from_another_thread(built, tmp_path) -> None:
    x = np.linspace(-1, 1, ROWS * DEPTH, dtype=np.float32).reshape(ROWS, DEPTH)
    y = run_program(built, tmp_path, BLOB, dense_blob(), x.tobytes())
    assert is_expected(np.frombuffer(y, np.float32)[: ROWS * COLS].reshape(ROWS, COLS), x)


def test_a_python_without_our_packages_finds_those_of_the_library(built) -> None:
    """The running interpreter is used; its own packages come first."""
    done = run(CONTEXT + "assert 'driver_layer' in sys.modules", built, "-I", "-S")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_process_in_which_the_driver_cannot_start_has_no_device(built) -> None:
    code = START + "sys.modules['cffi'] = None\nassert npu.zeInit(0) == 0x78000001"
    done = run(code, built)
    assert done.returncode == 0
    assert "cannot start in this process" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrong_choice_in_the_environment_is_a_result_code(built) -> None:
    code = START + "assert npu.zeInit(0) == 0x78000004"
    done = run(code, built, ZE_INTEL_NPU_PLATFORM_OVERRIDE="no such NPU")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def test_after_the_end_of_python_objects_can_be_released_and_nothing_else(built) -> None:
    """OpenVINO destroys what a script left in its variables after that."""
    late = """
import atexit
def late():
    found = npu.zeContextDestroy(context), npu.zeDriverGet(ctypes.byref(one), None)
    print(*map(hex, found), npu.zelCheckIsLoaderInTearDown() & 1)
atexit.register(late)
"""
    done = run(late + CONTEXT, built)
    assert (done.returncode, done.stdout.split()) == (0, ["0x0", "0x78000001", "1"]), done.stderr


def test_an_interrupt_ends_a_wait_and_reaches_the_host(built) -> None:
    code = (
        CONTEXT
        + """
import os, signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
device, pool, event = (ctypes.c_void_p() for _ in range(3))
assert npu.zeDeviceGet(driver, ctypes.byref(one), ctypes.byref(device)) == 0
pool_desc = (ctypes.c_uint64 * 3)(0x10, 0, 1 << 32)
assert npu.zeEventPoolCreate(context, pool_desc, 0, None, ctypes.byref(pool)) == 0
assert npu.zeEventCreate(pool, (ctypes.c_uint64 * 4)(0x11), ctypes.byref(event)) == 0
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
code = None
npu.zeEventHostSynchronize.restype = ctypes.c_uint32
try:
    code = npu.zeEventHostSynchronize(event, ctypes.c_uint64(-1))
    for _ in range(1000): pass
    print("no interrupt")
except KeyboardInterrupt:
    print("interrupt")
assert npu.zeEventHostSignal(event) == 0
assert npu.zeEventHostSynchronize(event, ctypes.c_uint64(-1)) == 0
"""
    )
    done = run(code, built)
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupt\n", "")


def test_calls_are_logged_on_request(built) -> None:
    done = run(CONTEXT, built, NPU_LOG_CALLS="1")
    lines = done.stderr.splitlines()
    assert [line.split("(")[0].split()[-1] for line in lines] == [
        *("zeInit", "zeDriverGet", "zeContextCreate"),
    ]
    assert all(" = 0x0, " in line for line in lines)


def test_both_names_are_one_library(built) -> None:
    assert (built / "driver" / "libze_intel_npu.so.1").samefile(
        built / "loader" / "libze_loader.so.1"
    )
