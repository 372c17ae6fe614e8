"""A warm start reads only the bytes that it runs, counted in resident pages.

The tests first drop the files from the system's cache; afterwards they ask for resident pages.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from npuw_layer import Core
from npuw_layer.backends.mapped import drop_pages, map_file, read_ahead
from npuw_layer.storage.container import MODEL, STAGE, Container, read_container
from npuw_layer.storage.manifest import EntryManifest, ModelManifest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's mincore")

SMALL = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_MIN_RESPONSE_LEN": 64}

SLACK = 1 << 20
"""Slack for pages that contain only a few read bytes, and for the system's additions."""

START = """
import json, sys
from npuw_layer import Core
model, config = sys.argv[1], json.loads(sys.argv[2])
print(Core().compile_model(model, "NPU", config).get_property("LOADED_FROM_CACHE"))
"""


def resident(path: Path) -> int:
    """Return the resident bytes of a file."""
    size = path.stat().st_size
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as whole:
        pages = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
        first = ctypes.c_char.from_buffer(whole)
        address = ctypes.c_void_p(ctypes.addressof(first))
        assert ctypes.CDLL(None).mincore(address, ctypes.c_size_t(size), pages) == 0
        del first
    return mmap.PAGESIZE * sum(page & 1 for page in pages)


def forget(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if resident(path):
        pytest.skip("this file system keeps files in memory")


@pytest.fixture
def model(llama_8m, tmp_path) -> Path:
    """Return a copy that no other test has mapped: mapped pages stay in memory."""
    copy = shutil.copytree(llama_8m, tmp_path / "model")
    time.sleep(2.1)  # a digest is stored if the file has not changed for two seconds
    return copy


Begin = Callable[..., str]


@pytest.fixture
def begin(model) -> Begin:
    """Start in a separate process; return whether all programs were cached."""

    def start(**config: object) -> str:
        argv = [sys.executable, "-c", START, str(model), json.dumps(SMALL | config)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout.strip()

    return start


def loaded_bytes(container: Container[EntryManifest] | Container[ModelManifest]) -> int:
    """Return the bytes of a file without weights."""
    weights = [constant.size for part in container.manifest.parts for constant in part.constants]
    return len(container.places[0].content) - sum(weights)


def entry_of(path: Path) -> Container[EntryManifest]:
    return read_container(memoryview(path.read_bytes()), STAGE, EntryManifest)


@pytest.mark.long
@pytest.mark.parametrize("mode", ["OPTIMIZE_SIZE", "OPTIMIZE_SPEED"])
def test_a_start_from_the_cache_reads_programs_and_no_weights(
    begin: Begin, model: Path, tmp_path, mode: str
) -> None:
    config = {"CACHE_DIR": str(tmp_path), "CACHE_MODE": mode}
    weights = model / "model.safetensors"
    assert begin(**config) == "False"
    entries = sorted(tmp_path.glob("*.blob"))
    assert len(entries) == 3 + (mode == "OPTIMIZE_SPEED"), "prefill, generate, the LM head; weights"
    for path in (weights, *entries):
        forget(path)
    assert begin(**config) == "True"
    assert resident(weights) < SLACK, "the model is neither hashed nor read"
    found = {path: resident(path) for path in entries}
    for path in entries:
        assert found[path] < loaded_bytes(entry_of(path)) + SLACK
    if mode == "OPTIMIZE_SPEED":
        assert sum(found.values()) < sum(path.stat().st_size for path in entries) / 3


@pytest.mark.long
def test_an_import_of_a_verified_blob_reads_no_weights(begin: Begin, tmp_path) -> None:
    path = tmp_path / "x.blob"
    config = {"BLOB_PATH": str(path), "CACHE_DIR": str(tmp_path), "CACHE_MODE": "OPTIMIZE_SPEED"}
    begin(**config, EXPORT_BLOB="YES")
    needed = loaded_bytes(read_container(memoryview(path.read_bytes()), MODEL, ModelManifest))
    time.sleep(2.1)
    forget(path)
    begin(**config)
    # The system may already have dropped some pages.
    assert resident(path) > path.stat().st_size / 2, "the blob is not verified yet"
    forget(path)
    begin(**config)
    assert resident(path) < needed + SLACK < path.stat().st_size / 2


def memory_of(path: Path) -> dict[str, int]:
    """Return this process's bytes of a mapped file, by smaps' names."""
    sizes: dict[str, int] = {}
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, *rest = line.split()
        if not name.endswith(":"):
            inside = line.endswith(str(path))
        elif inside and rest[-1] == "kB":
            sizes[name[:-1]] = sizes.get(name[:-1], 0) + 1024 * int(rest[0])
    return sizes


def test_imported_weights_are_used_in_the_mapped_file(llama_8m, tmp_path) -> None:
    path = tmp_path / "x.blob"
    config = SMALL | {"CACHE_MODE": "OPTIMIZE_SPEED"}
    Core().compile_model(llama_8m, "NPU", config).export_model(path)
    imported = Core().import_model(path)
    assert memory_of(path)["Rss"] == 0, "loaded programs are not resident twice"
    ids = np.array([[5, 6, 7]])
    request = imported.create_infer_request()
    request.infer({"input_ids": ids, "attention_mask": ids * 0 + 1, "position_ids": ids - 5})
    used = memory_of(path)
    assert used["Rss"] > (llama_8m / "model.safetensors").stat().st_size / 4
    assert used["Private_Dirty"] == used["Anonymous"] == 0, "pages that all processes share"


def test_the_system_reads_only_accessed_pages(tmp_path) -> None:
    path = tmp_path / "one"
    path.write_bytes(os.urandom(8 << 20))
    forget(path)
    with path.open("rb") as file:
        content = map_file(file)
    byte = content[4 << 20]
    assert resident(path) <= 64 << 10
    read_ahead(content, 1 << 20, 1 << 20)
    assert sum(content[1 << 20 : 2 << 20]) >= 0
    assert resident(path) <= (1 << 20) + (192 << 10)
    assert byte == path.read_bytes()[4 << 20]


def test_a_program_with_dropped_pages_can_be_read_again(tmp_path) -> None:
    path = tmp_path / "one"
    path.write_bytes(os.urandom(1 << 20))
    with path.open("rb") as file:
        program = map_file(file)
    assert program == path.read_bytes()
    assert memory_of(path)["Rss"] == len(program)
    drop_pages(program)
    assert memory_of(path)["Rss"] == 0
    assert program == path.read_bytes()


def test_unmapped_bytes_stay_in_memory() -> None:
    for program in (b"whole", memoryview(b"whole")):
        drop_pages(program)
        assert program == b"whole"
