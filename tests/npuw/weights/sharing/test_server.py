"""The thread that passes weights on: it survives errors, and keeps no process or memory."""

from __future__ import annotations

import contextlib
import gc
import mmap
import os
import resource
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

if sys.platform != "linux":
    pytest.skip("weights are shared on Linux", allow_module_level=True)

from npuw_layer.backends import release
from npuw_layer.errors import DeviceError, SharingError
from npuw_layer.weights.sharing import server as server_module
from npuw_layer.weights.sharing.arena import join_arena
from npuw_layer.weights.sharing.usage import measure
from npuw_layer.weights.sharing.wire import REPLY_BYTES, Connection, Usage, WireRequest

IDENTITY = "0123456789abcdef" * 2
USAGE = WireRequest(want="usage", identity=IDENTITY)


@pytest.fixture
def connect(folder: Path) -> Iterator[Callable[[socket.socket, str], None]]:
    """Connect to a socket by name; the folder's path is too long for a socket's."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.parent.chmod(0o700)
    opened = os.open(folder, os.O_RDONLY)

    def link_to(link: socket.socket, name: str) -> None:
        link.connect(f"/proc/self/fd/{opened}/{name}")

    yield link_to
    os.close(opened)


def arenas() -> set[int]:
    """Return the shared memory that this process holds, by inode."""
    gc.collect()
    found: set[int] = set()
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            if "memfd:npu" in os.readlink(f"/proc/self/fd/{number}"):
                found.add(os.stat(f"/proc/self/fd/{number}").st_ino)
    return found


def test_a_process_without_descriptors_answers_later(connect, arena, here, caplog) -> None:
    assert here.is_right(arena.memory.data)
    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.socket(socket.AF_UNIX) as first, socket.socket(socket.AF_UNIX) as link:
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, most))
        try:
            connect(first, arena._server.name)  # with the descriptor that the server reserves
            first.close()
            connect(link, arena._server.name)
            until = time.monotonic() + 30
            while "are delayed" not in caplog.text and time.monotonic() < until:
                time.sleep(0.01)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))
        connection = Connection(link, 10)
        connection.send(USAGE)
        assert connection.receive(Usage, REPLY_BYTES).resident > 0


def test_the_server_survives_a_failed_answer(arena, here, monkeypatch, caplog) -> None:
    def fail(*_: object) -> Usage:
        raise PermissionError("/proc/self/smaps")

    with monkeypatch.context() as patched:
        patched.setattr(server_module, "measure", fail)
        assert not arena.report().processes
    assert "cannot be answered" in caplog.text
    assert os.getpid() in arena.report().processes
    again = here.join(IDENTITY)
    assert here.is_right(again.memory.data)
    again.close()


def test_garbage_collection_does_not_wait_for_an_answer(here, folder, connect, monkeypatch) -> None:
    """The collection may interrupt code that the answer waits for."""
    asked, go_on, answered = threading.Event(), threading.Event(), threading.Event()

    def slow(*_: object) -> Usage:
        asked.set()
        go_on.wait(10)
        answered.set()
        return Usage(resident=0, proportional=0)

    monkeypatch.setattr(server_module, "measure", slow)
    arena = here.join(IDENTITY)
    with socket.socket(socket.AF_UNIX) as link:
        connect(link, arena._server.name)
        Connection(link, 10).send(USAGE)
        assert asked.wait(10)
        del arena
        assert not answered.is_set()
        assert not folder.exists()
        go_on.set()
        assert answered.wait(10)


def test_without_a_thread_an_arena_is_neither_shared_nor_kept(here, folder, monkeypatch) -> None:
    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    before = arenas()
    device = here.new_device()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", fail)
        with pytest.raises(SharingError, match="start new thread"):
            join_arena(device, IDENTITY, here.LAYOUT, lambda _: None)
    assert device.allocated_bytes == 0
    assert not arenas() - before
    assert not folder.exists()


@pytest.mark.parametrize("attaching", [True, False])
@pytest.mark.parametrize("left", range(9))
def test_few_descriptors_suffice_or_are_an_error(here, open_files, left, attaching) -> None:
    """Whatever step fails, no file or memory of earlier steps remains."""
    device = here.new_device()
    others = [here.join(IDENTITY)] if attaching else []
    gc.collect()
    opened = len(open_files())
    before, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with open(os.devnull) as file:
        limit = file.fileno() + left
    made = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, most))
    try:
        made.append(join_arena(device, IDENTITY, here.LAYOUT, lambda _: None))
    except (SharingError, DeviceError) as error:
        why = str(error)
    else:
        why = "descriptor"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before, most))
    assert "descriptor" in why or "open files" in why
    while made:
        made.pop().close()
    gc.collect()
    # The other process's thread, which is in this process, too, may be about to close its end.
    deadline = time.monotonic() + 10
    while len(open_files()) != opened and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(open_files()) == opened
    assert device.allocated_bytes == 0
    while others:
        others.pop().close()


def test_weights_that_cannot_be_read_leave_no_memory(here) -> None:
    def fail(_: np.ndarray) -> None:
        raise KeyError("no such weight")

    before = arenas()
    device = here.new_device()
    with pytest.raises(KeyError) as caught:
        join_arena(device, IDENTITY, here.LAYOUT, fail)
    assert device.allocated_bytes == 0
    del caught
    assert not arenas() - before


def test_a_closed_arena_leaves_no_memory(here) -> None:
    before = arenas()
    arena = here.join(IDENTITY)
    assert arenas() - before
    arena.close()
    with pytest.raises(SharingError, match="no longer serves weights there"):
        arena.report()
    del arena
    assert not arenas() - before


def test_memory_can_be_sealed_during_a_garbage_collection(here, monkeypatch) -> None:
    """Releases are postponed during a collection; the writer's view of an arena is not."""
    monkeypatch.setattr(release, "_collecting", True)
    arena = here.join(IDENTITY)
    assert here.is_right(arena.memory.data)
    arena.close()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_keeps_the_file_with_the_descriptor_of_a_closed_arena(here) -> None:
    arena = here.join(IDENTITY)
    server = arena._server
    number = server._descriptor
    arena.close()
    with open(os.devnull) as file:
        os.dup2(file.fileno(), number)
    child = os.fork()
    if child == 0:
        try:
            os.fstat(number)
        except OSError:
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    os.close(number)


def test_other_files_in_the_folder_are_ignored(arena, here, folder) -> None:
    (folder / "0.sock").mkdir()
    again = here.join(IDENTITY)
    assert here.is_right(again.memory.data)
    again.close()
    (folder / "0.sock").rmdir()


@pytest.mark.parametrize("name", [b"plain", b"two words ", b"no\xfftext", b"\x0cpage\x1c\xc2\x85"])
def test_files_of_any_name_are_counted(tmp_path, name) -> None:
    path = os.path.join(os.fsencode(tmp_path), name)
    with open(path, "wb+") as file, open(os.devnull) as other:
        file.write(bytes(40_960))
        file.flush()
        with mmap.mmap(file.fileno(), 40_960, access=mmap.ACCESS_READ) as mapped:
            assert sum(mapped[::4096]) == 0
            assert measure(other.fileno(), [os.fsdecode(path)]).resident == 40_960
