"""Locks are released when their owner dies; leftovers of killed processes are deleted."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from npuw_layer.storage.cache.lock import locked
from npuw_layer.storage.cache.replace import remove_leftovers, replacing

OURS = {"one.blob"}.__contains__

HOLD = """
import sys
from pathlib import Path
from npuw_layer.storage.cache.lock import locked
from npuw_layer.storage.cache.replace import replacing

folder = Path(sys.argv[1])
with locked(folder / "one.blob.lock", print), replacing(folder / "one.blob") as file:
    file.write(bytes(100_000))
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Start a process that holds a lock and writes a file."""
    pytest.importorskip("fcntl")
    argv = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        yield child
        child.kill()


def names(folder: Path) -> list[str]:
    return sorted(path.suffix for path in folder.iterdir())


def test_waiting_for_a_lock_names_its_owner(holder, tmp_path) -> None:
    owners: list[str] = []

    def end_it(owner: str) -> None:
        owners.append(owner)
        holder.communicate("")

    with locked(tmp_path / "one.blob.lock", end_it) as exclusive:
        assert exclusive
    assert owners == [f"process {holder.pid}"]
    assert names(tmp_path) == [".blob"], "the lock's file is deleted with the lock"


def test_a_killed_owner_releases_its_lock(holder, tmp_path) -> None:
    with locked(tmp_path / "one.blob.lock", lambda _: holder.kill()) as exclusive:
        assert exclusive


def test_files_in_use_stay_and_leftovers_are_deleted(holder, tmp_path) -> None:
    assert names(tmp_path) == [".lock", ".tmp"]
    assert not remove_leftovers(tmp_path, OURS)
    holder.kill()
    holder.wait()
    assert names(tmp_path) == [".lock", ".tmp"], "kill -9 leaves all files"
    assert len(remove_leftovers(tmp_path, OURS)) == 2
    assert not names(tmp_path)


def test_only_the_leftovers_of_the_same_file_are_deleted(holder, tmp_path) -> None:
    holder.kill()
    holder.wait()
    assert not remove_leftovers(tmp_path, {"other.blob"}.__contains__)
    assert len(remove_leftovers(tmp_path, {"one.blob"}.__contains__, locks=False)) == 1
    assert names(tmp_path) == [".lock"]


def test_files_of_others_are_never_deleted(halves, key, tmp_path) -> None:
    """CACHE_DIR may be any folder, e.g. that of a project with the locks of its packages."""
    theirs = ["Cargo.lock", ".notes.tmp", ".draft-12345678.tmp", "x.blob.lock", f"{'0' * 53}.lock"]
    ours = [f".{key.name}.blob-12345678.tmp", f"{key.name}.blob.lock"]
    for name in (*theirs, *ours):
        (tmp_path / name).write_bytes(b"")
    halves(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(theirs)


def test_threads_exclude_each_other(tmp_path) -> None:
    pytest.importorskip("fcntl")
    inside, most = [0], [0]

    def work() -> None:
        for _ in range(30):
            with locked(tmp_path / "one.blob.lock", lambda _: None):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                os.sched_yield()
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
    assert not names(tmp_path)


def no_locks(monkeypatch) -> None:
    """Simulate a file system without locks, like some network file systems."""

    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(pytest.importorskip("fcntl"), "flock", refuse)


def test_caches_work_without_locks(halves, key, tmp_path, monkeypatch, without_compiling) -> None:
    no_locks(monkeypatch)
    assert halves(tmp_path).obtain("one", key, lambda: b"program!").compiled
    assert not halves(tmp_path).obtain("one", key, without_compiling).compiled
    assert names(tmp_path) == [".blob", ".digest"]


def test_without_locks_only_old_files_are_leftovers(tmp_path, monkeypatch) -> None:
    no_locks(monkeypatch)
    for name, age in (("00000001", 60), ("00000002", 2 * 24 * 3600)):
        path = tmp_path / f".one.blob-{name}.tmp"
        path.write_bytes(b"")
        then = path.stat().st_mtime - age
        os.utime(path, (then, then))
    assert [path.name for path in remove_leftovers(tmp_path, OURS)] == [".one.blob-00000002.tmp"]


def test_a_lock_file_of_random_bytes_names_no_owner(holder, tmp_path) -> None:
    (tmp_path / "one.blob.lock").write_bytes(b"\x1b[2J\xff rm -rf\n" * 100)
    owners: list[str] = []

    def end_it(owner: str) -> None:
        owners.append(owner)
        holder.kill()

    with locked(tmp_path / "one.blob.lock", end_it):
        assert owners == ["another process"]


def test_a_failed_write_leaves_the_old_file(tmp_path) -> None:
    path = tmp_path / "one.blob"
    path.write_bytes(b"old")

    def fail() -> None:
        with replacing(path) as file:
            file.write(b"half of the ne")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == [".blob"]
