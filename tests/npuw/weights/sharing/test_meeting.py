"""The meeting folder of processes: private, locked by one, removed by the last."""

from __future__ import annotations

import errno
import gc
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("weights are shared on Linux", allow_module_level=True)

from npuw_layer import Core
from npuw_layer.errors import SharingError
from npuw_layer.weights.sharing.meeting import locked_meeting, private_folder

IDENTITY = "0123456789abcdef" * 2


def test_a_folder_removed_during_a_wait_is_created_again(folder, open_files) -> None:
    """Otherwise two processes could hold locks of different folders at one path."""
    found: list[bool] = []

    def wait() -> None:
        with locked_meeting(IDENTITY) as meeting:
            found.append(meeting.is_there())

    with locked_meeting(IDENTITY) as first:
        waiting = threading.Thread(target=wait)
        waiting.start()
        while open_files().count(str(folder)) < 2:
            time.sleep(0.01)
        first.remove_if_empty()
    waiting.join()
    assert found == [True]


@pytest.mark.parametrize("what", ["open to others", "a link", "a file"])
def test_a_folder_that_other_users_can_access_is_not_used(tmp_path, what) -> None:
    place = tmp_path / "npuw"
    if what == "open to others":
        place.mkdir(mode=0o755)
    elif what == "a link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        place.symlink_to(tmp_path / "elsewhere")
    else:
        place.write_text("")
    with pytest.raises(SharingError, match="private"):
        private_folder()


def test_folder_and_socket_are_private_to_the_user(here, folder) -> None:
    arena = here.join(IDENTITY)
    (socket,) = folder.iterdir()
    assert (folder.stat().st_mode & 0o777, socket.stat().st_mode & 0o777) == (0o700, 0o600)
    arena.close()


@pytest.mark.parametrize("when", ["before it is checked", "before it is opened"])
def test_a_folder_removed_while_it_is_opened_is_created_again(folder, monkeypatch, when) -> None:
    """The last process to leave removes the folder, even if another one arrives."""
    left = [folder]
    look, open_ = Path.lstat, os.open

    def removed() -> None:
        if left and left[0].exists():
            left.pop().rmdir()

    def lstat(path: Path) -> os.stat_result:
        if path == folder and when == "before it is checked":
            removed()
        return look(path)

    def opened(path, *args, **kwargs) -> int:
        if path == folder and when == "before it is opened":
            removed()
        return open_(path, *args, **kwargs)

    monkeypatch.setattr(Path, "lstat", lstat)
    monkeypatch.setattr(os, "open", opened)
    with locked_meeting(IDENTITY) as meeting:
        assert meeting.is_there()
    assert not left


def test_a_folder_without_a_receiver_is_closed(folder, open_files) -> None:
    with locked_meeting(IDENTITY):
        assert str(folder) in open_files()
    gc.collect()
    assert str(folder) not in open_files()


@pytest.fixture
def nowhere(monkeypatch) -> None:
    """Simulate a container without a writable folder."""

    def refuse() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(tempfile, "gettempdir", refuse)


@pytest.mark.usefixtures("nowhere")
def test_without_a_writable_folder_weights_are_not_shared(tiny, caplog) -> None:
    with pytest.raises(SharingError, match=r"No usable .*; set XDG_RUNTIME_DIR"):
        private_folder()
    config = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_WEIGHTS_BANK_ALLOC": "SHARED"}
    assert Core().compile_model(tiny, "NPU", config).sharing() is None
    assert "No usable temporary directory" in caplog.text


def test_a_folder_that_cannot_be_created_is_an_error(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "npuw").mkdir(mode=0o700)
    with pytest.raises(SharingError, match="No such file"), locked_meeting("a/folder"):
        pass


def test_an_invalid_path_of_the_runtime_folder_is_not_used(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "x" * 300)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert private_folder().parent == tmp_path
