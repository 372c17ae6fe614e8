"""Files by key: bounded, complete or absent, and never those of others."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from driver_layer.support.file_cache import FileCache

ONE = 1000 + 32
"""Bytes of a file with the content of most tests, and its digest."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def filled(folder: Path, limit: int, count: int) -> FileCache:
    """Write files, the first of which were read the longest ago."""
    cache = FileCache(folder, limit, ".x")
    for number in range(count):
        cache.write(str(number), bytes(1000))
        path = cache._path(str(number))
        if path.exists():
            os.utime(path, ns=(number, number))
    return cache


def held(cache: FileCache, count: int) -> list[int]:
    return [number for number in range(count) if cache._path(str(number)).exists()]


def test_exactly_as_much_is_kept_as_fits(folder) -> None:
    assert held(filled(folder, 3 * ONE, 3), 3) == [0, 1, 2]
    assert held(filled(folder / "less", 3 * ONE - 1, 3), 3) == [1, 2]
    tiny = filled(folder / "tiny", ONE - 1, 3)
    assert held(tiny, 3) == []
    assert tiny.used_bytes == 0


def test_reading_protects_a_file_and_leaves_its_time_of_writing(folder) -> None:
    cache = filled(folder, 3 * ONE, 3)
    assert cache.read("0") == bytes(1000)
    assert cache._path("0").stat().st_mtime_ns == 0
    cache.write("3", bytes(1000))
    assert held(cache, 4) == [0, 2, 3]
    assert cache.used_bytes == 3 * ONE


def test_a_file_that_is_replaced_needs_no_room_of_its_own(folder) -> None:
    cache = filled(folder, 2 * ONE, 2)
    cache.write("1", b"\1" * 1000)
    assert held(cache, 2) == [0, 1]
    assert cache.read("1") == b"\1" * 1000


@pytest.mark.parametrize("damage", [b"", b"short", bytes(ONE), b"\1" * (1 << 16)])
def test_a_damaged_file_is_missing_until_it_is_written_again(folder, damage, caplog) -> None:
    cache = filled(folder, 1 << 20, 1)
    cache._path("0").write_bytes(damage)
    assert cache.read("0") is None
    assert "damaged" in caplog.text
    cache.write("0", b"again")
    assert cache.read("0") == b"again"


def test_a_file_beyond_the_limit_is_not_read(folder) -> None:
    cache = filled(folder, 1 << 20, 1)
    cache.limit = ONE - 1
    assert cache.read("0") is None


def test_files_of_others_are_neither_counted_nor_evicted_but_unfinished_ones_are(folder) -> None:
    cache = filled(folder, ONE, 1)
    (folder / "notes.x").write_bytes(bytes(5000))
    os.mkfifo(cache._path("1"))
    unfinished = Path(f"{cache._path('2')}.tmpabcd_123")
    unfinished.write_bytes(bytes(10))
    os.utime(unfinished, ns=(0, 0))
    assert cache.used_bytes == ONE + 10
    assert cache.read("1") is None
    cache.write("3", bytes(1000))
    assert (folder / "notes.x").exists()
    assert not unfinished.exists()


def test_threads_never_exceed_the_limit_together(folder) -> None:
    cache = filled(folder, 3 * ONE, 0)

    def work(first: int) -> None:
        for number in range(first, first + 8):
            cache.write(str(number), bytes(1000))
            assert cache.used_bytes <= 3 * ONE + ONE  # with one that is being written
            cache.read(str(number))

    threads = [threading.Thread(target=work, args=(8 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(held(cache, 32)) == 3
    assert len(list(folder.iterdir())) == 3


def test_without_a_folder_nothing_is_stored(tmp_path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    for folder in (None, tmp_path / "open"):
        cache = FileCache(folder, 1 << 20, ".x")
        cache.write("0", b"content")
        assert cache.read("0") is None
        assert (cache.folder, cache.used_bytes) == (None, 0)


def test_a_full_disk_is_logged(folder, monkeypatch, caplog) -> None:
    cache = FileCache(folder, 1 << 20, ".x")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    cache.write("0", b"content")
    assert "No space left" in caplog.text
    assert list(folder.iterdir()) == []
