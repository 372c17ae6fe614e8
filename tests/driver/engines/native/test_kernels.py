"""Kernel cache: kernels are compiled once, and files that others may write are never loaded."""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path

import numpy as np
import pytest

from driver_layer.engines.native.jit import cache
from driver_layer.engines.native.jit.cache import ObjectCache
from driver_layer.engines.native.jit.emitter import I64, Emitter
from driver_layer.engines.native.jit.host import Host, Isa, detect, native_isa
from driver_layer.engines.native.jit.kernels import Kernels, KernelSpec
from driver_layer.errors import EngineError


def double(host: Host) -> str:
    """Write a kernel that doubles the number at its argument's address."""
    e = Emitter(host)
    place = e.pointer(0)
    e.store(e.b.mul(e.load(place, I64), I64(2)), place)
    return e.finish()


DOUBLE = KernelSpec("test double", double)


def run(kernels: Kernels) -> int:
    value = np.array([21], np.int64)
    words = np.array([value.ctypes.data], np.int64)
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
    assert kind(kernels.address(DOUBLE))(words.ctypes.data, None) == 0
    return int(value[0])


def test_a_warm_start_compiles_nothing(tmp_path: Path) -> None:
    cold, warm = (Kernels(detect(), ObjectCache(tmp_path / "kernels")) for _ in range(2))
    assert (run(cold), cold.compiled) == (42, 1)
    assert (run(warm), warm.compiled) == (42, 0)


def test_each_instruction_set_has_its_own_kernels(tmp_path: Path) -> None:
    for isa in (isa for isa in Isa if isa <= native_isa()):
        kernels = Kernels(detect(isa), ObjectCache(tmp_path / "kernels"))
        assert (run(kernels), kernels.compiled) == (42, 1)


def test_a_damaged_object_file_is_compiled_again(tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    run(Kernels(detect(), ObjectCache(folder)))
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    for damage in (b"", whole[:40], whole[:-1], whole[:-1] + b"?"):
        file.write_bytes(damage)
        kernels = Kernels(detect(), ObjectCache(folder))
        assert (run(kernels), kernels.compiled) == (42, 1)


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_a_folder_that_other_users_may_write_is_not_used(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "kernels"
    folder.mkdir()
    folder.chmod(mode)
    assert run(Kernels(detect(), ObjectCache(folder))) == 42
    assert not list(folder.iterdir())


def test_a_folder_that_cannot_be_created_disables_the_cache(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert run(Kernels(detect(), ObjectCache(tmp_path / "file" / "kernels"))) == 42


def test_the_least_recently_read_kernels_are_evicted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "MOST_BYTES", 5000)
    objects = ObjectCache(tmp_path / "kernels")
    ago = time.time() - 1e6
    for number in range(4):
        objects.write(str(number), bytes(1000))
    for path in (tmp_path / "kernels").iterdir():
        os.utime(path, (ago, ago))
    assert objects.read("1") == bytes(1000)  # marks it as recently read
    objects.write("4", bytes(1000))
    kept = {number for number in range(5) if objects.read(str(number)) is not None}
    assert kept >= {1, 4}
    assert len(kept) == 4


def test_a_level_above_the_machines_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    highest = max(Isa)
    if native_isa() is highest:
        pytest.skip("the machine has the highest level")
    with pytest.raises(EngineError, match=r"this machine has no \w+; use \w+ or a lower level"):
        detect(highest)
