"""The driver's cache of compiled graphs, as the public driver's tests of the same names have it.

Source: linux-npu-driver v1.32.1, validation/umd-test/test_driver_cache.cpp.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.driver.c_abi.library import INVALID_ARGUMENT, SUCCESS, Rig

from driver_layer.c_abi.declarations import at
from driver_layer.errors import GraphCompilerError
from driver_layer.support.files import content_digest
from driver_layer.testing.blobs import dense_blob
from driver_layer.ze import graph_cache as cached
from driver_layer.ze.graph_table import creation

LOADED, COMPILED = 1, 2
DISABLE_CACHING = 1
ENTRY = len(dense_blob()) + 32
FOUND, STORED = (
    f"ZE DynamicCaching cache_status_t: cache_status_t::{word}\n".encode()
    for word in ("found", "stored")
)
MODELS = [b"model %d" % number for number in range(3)]


class Compiler:
    """Compiler that compiles every model to the same blob, and counts."""

    version, identity = (7, 6), "1"

    def __init__(self) -> None:
        self.compiled = 0

    def compile(self, model: memoryview, build_flags: str, platform: Any) -> bytes:
        if "UNSUPPORTED" in build_flags:
            raise GraphCompilerError("OPTION=UNSUPPORTED: unknown value")
        self.compiled += 1
        return dense_blob()


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> Compiler:
    made = Compiler()
    monkeypatch.setattr(creation, "needed_compiler", lambda: made)
    return made


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Folder of the cache of this process."""
    monkeypatch.setenv("ZE_INTEL_NPU_CACHE_DIR", str(tmp_path / "cache"))
    cached.disk_cache.cache_clear()
    yield tmp_path / "cache"
    cached.disk_cache.cache_clear()


class Caches:
    """The functions that the public driver's tests ask for, and the creation of graphs."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.set_size = self.private("zexDiskCacheSetSize", ctypes.c_size_t)
        self.get_size = self.private("zexDiskCacheGetSize", ctypes.c_void_p)
        self.get_folder = self.private("zexDiskCacheGetDirectory", ctypes.c_void_p, ctypes.c_void_p)

    def private(self, name: str, *types: Any) -> Callable[..., int]:
        text = self.rig.buffer(name.encode() + b"\0")
        found = self.rig.npu.make("zeDriverGetExtensionFunctionAddress", self.rig.driver, text)
        return ctypes.CFUNCTYPE(ctypes.c_uint32, *types)(found)

    def create(
        self,
        model: bytes,
        flags: int = 0,
        build_flags: bytes = b"",
        input_hash: int | None = None,
        function: str = "pfnCreate2",
    ) -> int:
        """Create a graph; return the flag of its origin."""
        rig, hashed = self.rig, 0
        if input_hash is not None:
            hashed = rig.struct("ze_graph_input_hash_t", hash=input_hash)
        fields: dict[str, Any] = {
            "pNext": hashed,
            "format": 2,
            "inputSize": len(model),
            "pInput": rig.buffer(model),
            "pBuildFlags": rig.buffer(build_flags + b"\0"),
        }
        if function == "pfnCreate":
            desc = rig.struct("ze_graph_desc_t", **fields)
        else:
            desc = rig.struct("ze_graph_desc_2_t", flags=flags, **fields)
        place = rig.buffer(bytes(8))
        log = [None] if function == "pfnCreate3" else []
        create = getattr(rig.npu, function)
        assert create(rig.context, rig.device, desc, place, *log) == SUCCESS
        graph = at("uint64_t", place)[0]
        properties = rig.struct("ze_graph_properties_3_t")
        assert rig.npu.pfnGetProperties3(graph, properties) == SUCCESS
        assert rig.npu.pfnDestroy(graph) == SUCCESS
        return rig.read("ze_graph_properties_3_t", properties).flags & 0b111

    def size(self) -> int:
        place = self.rig.buffer(bytes(8))
        assert self.get_size(place) == SUCCESS
        return at("uint64_t", place)[0]

    def queried(self, kind: int) -> tuple[int, int]:
        place = self.rig.struct("ze_graph_memory_query_t")
        assert self.rig.npu.pfnQueryContextMemory(self.rig.context, kind, place) == SUCCESS
        found = self.rig.read("ze_graph_memory_query_t", place)
        return found.allocated, found.total

    def log(self) -> bytes:
        size = self.rig.buffer(bytes(8))
        assert self.rig.npu.pfnBuildLogGetString(None, size, None) == SUCCESS
        text = self.rig.buffer(bytes(at("uint32_t", size)[0]))
        assert self.rig.npu.pfnBuildLogGetString(None, size, text) == SUCCESS
        return ctypes.string_at(text)


@pytest.fixture
def rig(direct: Rig) -> Rig:
    """A device in this process, whose compiler tests replace."""
    return direct


@pytest.fixture
def caches(rig: Rig, folder: Path, compiler: Compiler) -> Caches:
    return Caches(rig)


def entries(folder: Path) -> dict[str, int]:
    """Return the files of the cache, and their times of writing."""
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


def test_private_functions_are_found_by_their_names_alone(rig, caches, folder) -> None:
    room, length = rig.buffer(bytes(4096)), rig.buffer((4096).to_bytes(8, "little"))
    assert caches.get_folder(room, length) == SUCCESS
    assert ctypes.string_at(room) == str(folder).encode()
    unknown = rig.buffer(b"zexOfAnotherDriver\0")
    ask = rig.npu.zeDriverGetExtensionFunctionAddress
    assert ask(rig.driver, unknown, rig.buffer(bytes(8))) == INVALID_ARGUMENT


def test_check_if_cache_set_size_changes_total_size(caches) -> None:
    default = caches.size()
    assert default == 4 << 30
    caches.create(MODELS[0])
    for size in (512 << 20, default):
        assert caches.set_size(size) == SUCCESS
        assert caches.size() == size
        for kind in (2, 3):
            assert caches.queried(kind) == (ENTRY, size)


def test_check_if_all_compiled_models_are_cached(caches, folder, compiler) -> None:
    assert [caches.create(model) for model in MODELS] == [COMPILED] * 3
    first = entries(folder)
    assert [caches.create(model) for model in MODELS] == [LOADED] * 3
    assert entries(folder) == first, "a hit leaves the files as they are"
    assert (len(first), compiler.compiled) == (3, 3)


def test_check_too_small_cache(caches, folder) -> None:
    caches.set_size(0x100)
    assert [caches.create(model) for model in MODELS] == [COMPILED] * 3
    assert not entries(folder)


@pytest.mark.parametrize(("limit", "kept"), [(3 * ENTRY - 1, 2), (3 * ENTRY, 3)])
def test_check_when_space_is_less_than_or_equals_all_blobs(caches, folder, limit, kept) -> None:
    caches.set_size(limit)
    for model in MODELS:
        caches.create(model)
    assert len(entries(folder)) == kept


def test_check_if_corrupted_cached_is_overridden(caches, folder) -> None:
    caches.create(MODELS[0])
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    for damage in (b"", whole[:100], whole[:-1], b"\0" * len(whole), whole + b"more"):
        path.write_bytes(damage)
        assert caches.create(MODELS[0]) == COMPILED
        assert path.read_bytes() == whole
        assert caches.create(MODELS[0]) == LOADED


def test_an_intact_entry_that_is_no_blob_is_compiled_again(caches, folder, caplog) -> None:
    """The digest is right: the author of a change can write a digest, too."""
    caches.create(MODELS[0])
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    path.write_bytes(b"no blob" + content_digest([b"no blob"]))
    assert caches.create(MODELS[0]) == COMPILED
    assert "compiled again" in caplog.text
    assert path.read_bytes() == whole


def test_check_cache_using_multiple_threads(caches, folder) -> None:
    for expected in ({COMPILED, LOADED}, {LOADED}):
        found = list[int]()

        def work(number: int, found: list[int] = found) -> None:
            found.append(caches.create(MODELS[number % len(MODELS)]))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 8
        assert set(found) <= expected
        assert len(entries(folder)) == len(MODELS)


@pytest.mark.parametrize("function", ["pfnCreate", "pfnCreate2", "pfnCreate3"])
def test_an_input_hash_stands_for_the_model(caches, folder, function) -> None:
    assert caches.create(MODELS[0], input_hash=0x112233, function=function) == COMPILED
    assert caches.create(MODELS[1], input_hash=0x112233, function=function) == LOADED
    assert caches.create(MODELS[1], input_hash=0x112234, function=function) == COMPILED
    perf = b'--config PERF_COUNT="NO"'
    other = caches.create(MODELS[0], input_hash=0x112233, build_flags=perf, function=function)
    assert other == COMPILED
    assert len(entries(folder)) == 3


def test_the_key_has_the_compiler_the_flags_and_the_device(
    caches, compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    caches.create(MODELS[0])
    assert caches.create(MODELS[0], flags=2) == COMPILED
    assert caches.create(MODELS[0]) == LOADED
    monkeypatch.setattr(Compiler, "identity", "2")
    assert caches.create(MODELS[0]) == COMPILED
    monkeypatch.setattr(cached, "repr", lambda _: "another device", raising=False)
    assert caches.create(MODELS[0]) == COMPILED


def test_a_caller_may_do_without_the_cache(caches, folder) -> None:
    caches.create(MODELS[0])
    first = entries(folder)
    for model in MODELS[:2]:
        assert caches.create(model, DISABLE_CACHING) == COMPILED
        assert caches.log() == b""
    assert entries(folder) == first


def test_check_if_a_model_is_cached_using_the_build_log(caches) -> None:
    caches.create(MODELS[0])
    assert caches.log() == STORED
    caches.create(MODELS[0])
    assert caches.log() == FOUND


def test_a_failed_compilation_is_logged_and_not_cached(rig, caches, folder) -> None:
    build_flags = rig.buffer(b'--config OPTION="UNSUPPORTED"\0')
    desc = rig.struct(
        "ze_graph_desc_2_t",
        format=2,
        inputSize=3,
        pInput=rig.buffer(b"bad"),
        pBuildFlags=build_flags,
    )
    place = rig.buffer(bytes(8))
    assert rig.npu.pfnCreate2(rig.context, rig.device, desc, place) != SUCCESS
    assert b"UNSUPPORTED" in caches.log()
    assert not entries(folder)


class TestEnvironment:
    @pytest.mark.parametrize("text", ["", "x" * 5000])
    def test_no_folder_disables_the_cache(
        self, rig, folder, compiler, monkeypatch: pytest.MonkeyPatch, text
    ) -> None:
        monkeypatch.setenv("ZE_INTEL_NPU_CACHE_DIR", text)
        caches = Caches(rig)
        assert [caches.create(MODELS[0]) for _ in range(2)] == [COMPILED] * 2
        assert caches.queried(2)[0] == 0

    @pytest.mark.parametrize(
        ("text", "size"), [("0", 0), ("12345", 12345), ("all", 0), ("-1", 0), ("9" * 40, 0)]
    )
    def test_the_size_is_a_number_of_bytes(
        self, caches, monkeypatch: pytest.MonkeyPatch, text, size
    ) -> None:
        monkeypatch.setenv("ZE_INTEL_NPU_CACHE_SIZE", text)
        assert caches.size() == size
        assert caches.create(MODELS[0]) == COMPILED

    def test_the_default_folder_is_the_public_drivers(
        self, tmp_path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("ZE_INTEL_NPU_CACHE_DIR", raising=False)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        cached.disk_cache.cache_clear()
        assert cached.disk_cache().folder == tmp_path / "ze_intel_npu_cache"
        cached.disk_cache.cache_clear()
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setenv("HOME", os.fspath(tmp_path))
        assert cached.disk_cache().folder == tmp_path / ".cache" / "ze_intel_npu_cache"
        cached.disk_cache.cache_clear()
