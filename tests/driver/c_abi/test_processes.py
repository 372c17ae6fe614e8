"""Processes that load the library: with and without Python, interrupted, ending."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.driver.c_abi.cpp_program import BLOB, run_program
from tests.driver.c_abi.library import INVALID_ARGUMENT

from driver_layer.c_abi import build
from driver_layer.c_abi.emit_c import source
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


def test_a_python_without_our_packages_needs_none(built) -> None:
    """The driver's process has those of the library."""
    done = run(CONTEXT + "assert 'driver_layer' not in sys.modules", built, "-I", "-S")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("problem", ["no Python", "no package"])
def test_a_driver_that_cannot_start_is_no_device(tmp_path: Path, problem: str) -> None:
    (tmp_path / "cffi.py").write_text("raise ImportError('cffi is broken')")
    python = str(tmp_path / "python") if problem == "no Python" else sys.executable
    start = build.START.format(paths=[str(tmp_path), *sys.path])
    build.compile_library(build.compiler() or (), source(python, start), tmp_path / "built")
    done = run(START + "assert npu.zeInit(0) == npu.zeInit(0) == 0x78000001", tmp_path / "built")
    assert done.returncode == 0, done.stderr
    expected = (
        "does not start from" if problem == "no Python" else "cffi is broken; npu-run --check"
    )
    assert done.stderr.count(expected) == 1
    assert "Traceback" not in done.stderr


def test_a_wrong_choice_in_the_environment_is_a_result_code(built) -> None:
    code = START + "assert npu.zeInit(0) == 0x78000004"
    done = run(code, built, ZE_INTEL_NPU_PLATFORM_OVERRIDE="no such NPU")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def test_after_the_end_of_python_calls_go_on(built) -> None:
    """OpenVINO destroys what a script left in its variables after that."""
    late = """
import atexit
def late():
    found = npu.zeContextDestroy(context), npu.zeDriverGet(ctypes.byref(one), None)
    print(*map(hex, found), npu.zelCheckIsLoaderInTearDown() & 1)
atexit.register(late)
"""
    done = run(late + CONTEXT, built)
    assert (done.returncode, done.stdout.split()) == (0, ["0x0", "0x0", "0"]), done.stderr


def test_an_interrupt_waits_until_the_call_has_its_result(built) -> None:
    """Interrupt the first call, which starts the driver, and one that waits."""
    code = """
import os, signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
def interrupted(call, delay):
    threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)).start()
    code = None
    try:
        code = call()
        for _ in range(1000): pass
        print("no interrupt")
    except KeyboardInterrupt:
        print("interrupt", code)
"""
    first = "\ninterrupted(lambda: npu.zeInit(0), 0.05)\n"
    wait = """
device, pool, event = (ctypes.c_void_p() for _ in range(3))
assert npu.zeDeviceGet(driver, ctypes.byref(one), ctypes.byref(device)) == 0
pool_desc = (ctypes.c_uint64 * 3)(0x10, 0, 1 << 32)
assert npu.zeEventPoolCreate(context, pool_desc, 0, None, ctypes.byref(pool)) == 0
assert npu.zeEventCreate(pool, (ctypes.c_uint64 * 4)(0x11), ctypes.byref(event)) == 0
npu.zeEventHostSynchronize.restype = ctypes.c_uint32
interrupted(lambda: npu.zeEventHostSynchronize(event, ctypes.c_uint64(600_000_000)), 0.3)
assert npu.zeEventHostSignal(event) == 0
assert npu.zeEventHostSynchronize(event, ctypes.c_uint64(-1)) == 0
"""
    body = CONTEXT.removeprefix(START)
    done = run(START + code + first + body + wait, built)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["interrupt"] * 2


def test_a_call_needs_no_lock_of_its_caller(built, tmp_path: Path) -> None:
    """Another thread holds Python's lock and waits for who calls, as OpenVINO's binding does."""
    source_file, helper = tmp_path / "helper.c", tmp_path / "helper.so"
    source_file.write_text(HELPER)
    line = [*(build.compiler() or ()), "-shared", "-fPIC", "-o", helper, source_file]
    subprocess.run(line, check=True, timeout=60)
    code = f"""
import threading
path = {str(helper)!r}
with_lock, without_lock = ctypes.PyDLL(path), ctypes.CDLL(path)
call = ctypes.cast(npu.zeContextGetStatus, ctypes.c_void_p)
caller = threading.Thread(target=without_lock.call_in_mutex, args=(call, context))
caller.start()
with_lock.wait_for_mutex()
caller.join()
print("done")
"""
    done = run(CONTEXT + code, built)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


HELPER = """
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int entered;
void call_in_mutex(unsigned (*call)(void *), void *context) {
    pthread_mutex_lock(&mutex);
    entered = 1;
    usleep(100000);
    call(context);
    pthread_mutex_unlock(&mutex);
}
void wait_for_mutex(void) {
    while (!entered)
        usleep(1000);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}
"""


def test_each_of_many_threads_calls(built) -> None:
    """Threads that end leave their places to others."""
    code = """
import threading
def calls():
    found.extend(npu.zeContextGetStatus(context) for _ in range(3))
found = []
for _ in range(8):
    threads = [threading.Thread(target=calls) for _ in range(32)]
    for one in threads: one.start()
    for one in threads: one.join()
print(len(found), set(found))
"""
    done = run(CONTEXT + code, built)
    assert (done.returncode, done.stdout, done.stderr) == (0, "768 {0}\n", "")


def test_a_forked_process_has_a_driver_of_its_own(built) -> None:
    code = """
import os
child = os.fork()
if not child:
    found = npu.zeContextGetStatus(context), npu.zeInit(0)
    print(*map(hex, found), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(npu.zeContextGetStatus(context))
"""
    done = run(CONTEXT + code, built)
    assert done.returncode == 0
    assert done.stdout.split() == [hex(INVALID_ARGUMENT), "0x0", "0"]
    assert done.stderr.count("was forked from one that uses the NPU") == 1


@pytest.mark.parametrize("after", ["", "kept = [os.pipe() for _ in range(50)]"])
def test_a_program_that_closes_all_files_has_lost_the_device(built, after: str) -> None:
    code = f"""
import os, time
os.closerange(3, 4096)
{after}
for _ in range(1000):  # until the driver has seen it
    if npu.zeContextGetStatus(context): break
    time.sleep(0.01)
found = npu.zeContextGetStatus(context), npu.zeContextDestroy(context)
print(*map(hex, found))
"""
    done = run(CONTEXT + code, built)
    assert (done.returncode, done.stdout) == (0, "0x70000001 0x0\n")
    assert done.stderr.count("the device is lost") == 1


def test_few_file_handles_suffice(built) -> None:
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))\n"
    done = run(limit + CONTEXT, built)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_host_has_no_child_of_the_library(built) -> None:
    """A program that waits for all its children does not wait for the driver."""
    code = """
import os
try:
    os.wait()
except ChildProcessError:
    print("no child")
"""
    done = run(CONTEXT + code, built)
    assert (done.returncode, done.stdout, done.stderr) == (0, "no child\n", "")


def drivers_of(host: int) -> list[int]:
    """Return the numbers of the driver processes that a process has started."""
    mark = f"NPU_TEST_HOST={host}\0".encode()
    found = list[int]()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            is_driver = b"c_abi.serve" in (folder / "cmdline").read_bytes()
            if is_driver and mark in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


LIVING = """
os.environ["NPU_TEST_HOST"] = str(os.getpid())
"""


@pytest.mark.parametrize("ending", ["exit", "kill"])
def test_the_driver_ends_with_its_host(built, ending: str) -> None:
    code = "import os" + LIVING + CONTEXT + "print('ready', flush=True); sys.stdin.read()"
    library = built / "loader" / "libze_loader.so.1"
    host = subprocess.Popen(
        [sys.executable, "-c", code, library], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert host.stdin
    assert host.stdout
    with host:
        host.stdout.readline()
        (process,) = drivers_of(host.pid)
        host.kill() if ending == "kill" else host.stdin.close()
    for _ in range(100):
        if not drivers_of(host.pid):
            return
        time.sleep(0.05)
    raise AssertionError(f"process {process} goes on")


def test_a_driver_that_ends_is_a_lost_device(built) -> None:
    code = """
print("ready", flush=True)
os.kill(int(input()), signal.SIGKILL)
print(hex(npu.zeContextGetStatus(context)), npu.zeContextDestroy(context))
"""
    library = built / "loader" / "libze_loader.so.1"
    host = subprocess.Popen(
        [sys.executable, "-c", "import os, signal" + LIVING + CONTEXT + code, library],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with host:
        assert host.stdin
        assert host.stdout
        assert host.stderr
        host.stdout.readline()
        (process,) = drivers_of(host.pid)
        host.stdin.write(f"{process}\n")
        host.stdin.flush()
        assert host.stdout.read() == "0x70000001 0\n"
        assert host.stderr.read().count("the device is lost") == 1


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
