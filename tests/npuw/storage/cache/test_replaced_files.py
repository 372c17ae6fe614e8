"""A replaced file keeps its links, mode and owner, as if it had been written in place."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from npuw_layer.storage.cache.replace import replacing

needs_modes = pytest.mark.skipif(os.name != "posix", reason="modes and pipes are POSIX's")


def write(path: Path, content: bytes = b"new") -> None:
    with replacing(path) as file:
        file.write(content)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def private(tmp_path) -> Path:
    path = tmp_path / "private"
    path.write_bytes(b"old")
    path.chmod(0o600)
    return path


@needs_modes
def test_a_pipe_stays_a_pipe(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match=r"not a regular file: .*pipe"):
        write(tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


@needs_modes
def test_a_device_stays_a_device(tmp_path) -> None:
    node = tmp_path / "null"
    try:
        os.mknod(node, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root creates devices")
    with pytest.raises(OSError, match=r"not a regular file: .*null"):
        write(node)
    assert node.is_char_device()


def test_a_folder_is_rejected_before_writing(tmp_path) -> None:
    (tmp_path / "folder").mkdir()

    def fail() -> None:
        with replacing(tmp_path / "folder"):
            pytest.fail("the block ran")

    with pytest.raises(IsADirectoryError):
        fail()


def test_an_invalid_name_is_an_error_of_the_file(tmp_path) -> None:
    with pytest.raises(OSError, match="not a file name: embedded null"):
        write(tmp_path / "a\0b")


@pytest.mark.parametrize("there", [True, False], ids=["a file", "nothing yet"])
def test_the_target_of_a_link_is_replaced(tmp_path, there: bool) -> None:
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "target", tmp_path / "link"
    if there:
        target.write_bytes(b"old")
    link.symlink_to(Path("far") / "target")
    (tmp_path / "second").symlink_to(link)
    write(tmp_path / "second")
    assert target.read_bytes() == b"new"
    assert not target.is_symlink()
    assert link.is_symlink()
    assert (tmp_path / "second").is_symlink()
    assert os.listdir(tmp_path / "far") == ["target"], "no other file remains there"


def test_circular_links_are_an_error(tmp_path) -> None:
    (tmp_path / "one").symlink_to(tmp_path / "two")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    with pytest.raises(OSError, match="symbolic links"):
        write(tmp_path / "one")


@needs_modes
def test_a_private_file_stays_private_during_the_write(private) -> None:
    with replacing(private) as file:
        file.write(b"new")
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
    assert (private.read_bytes(), mode(private)) == (b"new", 0o600)


@needs_modes
@pytest.mark.parametrize("before", [0o400, 0o644, 0o666, 0o755])
def test_the_mode_is_kept_with_any_umask(private, before: int) -> None:
    private.chmod(before)
    write(private)
    assert mode(private) == before


@needs_modes
def test_a_new_file_has_the_mode_of_the_umask(tmp_path) -> None:
    umask = os.umask(0o027)
    try:
        write(tmp_path / "new")
    finally:
        os.umask(umask)
    assert mode(tmp_path / "new") == 0o640


@needs_modes
def test_the_owner_is_kept_if_permitted(private) -> None:
    if os.geteuid():
        pytest.skip("only root may change owners")
    os.chown(private, 1234, 5678)
    write(private)
    found = private.stat()
    assert (found.st_uid, found.st_gid, mode(private)) == (1234, 5678, 0o600)


@needs_modes
def test_another_group_gets_only_the_rights_of_other_users(private, monkeypatch) -> None:
    def refuse(*_: int) -> None:
        raise PermissionError

    private.chmod(0o664)
    monkeypatch.setattr(os, "fchown", refuse)
    write(private)
    assert mode(private) == 0o644
