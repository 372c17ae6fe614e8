"""The blob cache: the second start compiles nothing, and loads no compiler modules."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driver_layer.support.progress import reported_to
from npuw_layer import Core
from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.errors import ModelError, NpuwFault
from npuw_layer.storage.cache.key import CacheKey
from npuw_layer.storage.cache.model_digest import digest_model

SMALL = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_MIN_RESPONSE_LEN": 64}


def test_the_second_start_compiles_nothing_and_has_the_same_logits(start, tiny, tmp_path) -> None:
    first, logits = start(tiny, tmp_path)
    second, again = start(tiny, tmp_path)
    assert (first, second) == (3, 0), "prefill, generate and the LM head"
    assert np.array_equal(logits, again)
    assert len(list(tmp_path.glob("*.blob"))) == 3
    others = {path.suffix for path in tmp_path.iterdir()} - {".blob", ".digest"}
    assert not others, "no temporary file and no lock remains"


ANSWER = """
import sys
from genai_layer import LLMPipeline

model, cache = sys.argv[1:]
lengths = {"MAX_PROMPT_LEN": 64, "MIN_RESPONSE_LEN": 64}
pipe = LLMPipeline(model, "NPU", CACHE_DIR=cache, **lengths)
pipe.generate("What is an NPU?", max_new_tokens=2)
print(*sys.modules)
"""

NEEDED_TO_RUN = {
    *("elements", "errors", "files", "model_folder", "nf4"),
    *("rewriting", "rewriting.garbage", "weights"),
}
"""Modules of the compiler without graphs."""


def modules_that_answer(model: Path, cache: Path) -> set[str]:
    """Answer a question in a separate process; return the loaded modules."""
    argv = [sys.executable, "-c", ANSWER, str(model), str(cache)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return set(done.stdout.split())


def test_a_warm_start_loads_no_compiler(demo, tmp_path) -> None:
    cold, warm = (modules_that_answer(demo, tmp_path) for _ in range(2))
    assert {"xdsl", "compiler_layer.pipeline"} <= cold, "these names are the modules to leave out"
    assert not {name for name in warm if name.split(".")[0] == "xdsl"}
    loaded = {name.partition(".")[2] for name in warm if name.startswith("compiler_layer.")}
    assert loaded <= NEEDED_TO_RUN


def test_a_model_is_hashed_once_and_again_when_it_changes(tmp_path, monkeypatch) -> None:
    hashed: list[str] = []

    def hear(activity: str, done: int, total: int, unit: str) -> None:
        if not done:
            hashed.append(activity.removeprefix("reading "))

    model = tmp_path / "model"
    model.mkdir()
    for name in ("config.json", "model.safetensors"):
        (model / name).write_bytes(b"old")
        os.utime(model / name, ns=(1, 1))
    settled = time.time_ns() + 10**10
    monkeypatch.setattr(time, "time_ns", lambda: settled)
    with reported_to(hear):
        first = digest_model(model, tmp_path)
        assert hashed == ["config.json", "model.safetensors"]
        assert digest_model(model, tmp_path) == first
        assert len(hashed) == 2, "hashed once"
        (model / "model.safetensors").write_bytes(b"new")
        os.utime(model / "model.safetensors", ns=(1, 1))  # restore the time
        assert digest_model(model, tmp_path) != first
        assert hashed[2:] == ["model.safetensors"]


def test_the_digest_of_a_folder_covers_the_weight_files_that_count(tmp_path: Path) -> None:
    """A stray file changes no digest; without model.safetensors, index and shards count."""
    index = {"weight_map": {"a": "one.safetensors"}}
    content = {"config.json": "{}", "model.safetensors": "1", "one.safetensors": "2"}
    for name, text in content.items():
        (tmp_path / name).write_text(text)
    first = digest_model(tmp_path, None)
    (tmp_path / "optimizer.safetensors").write_text("3")
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert digest_model(tmp_path, None) == first
    (tmp_path / "model.safetensors").unlink()
    sharded = digest_model(tmp_path, None)
    (tmp_path / "optimizer.safetensors").unlink()
    assert digest_model(tmp_path, None) == sharded != first
    (tmp_path / "one.safetensors").write_text("4")
    assert digest_model(tmp_path, None) != sharded


def test_a_file_that_was_just_written_is_hashed_each_time(tmp_path) -> None:
    """The next change might have the same time."""
    (tmp_path / "openvino_model.xml").write_bytes(b"<net/>")
    digest_model(tmp_path / "openvino_model.xml", tmp_path)
    assert not list(tmp_path.glob("*.digest"))


@pytest.fixture
def hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str, Path]:
    """Return a model's file, its digest, and the digest's file."""
    file = tmp_path / "openvino_model.xml"
    file.write_bytes(b"<net/>")
    settled = time.time_ns() + 10**10
    monkeypatch.setattr(time, "time_ns", lambda: settled)
    expected = digest_model(file, tmp_path)
    (kept,) = tmp_path.glob("*.digest")
    return file, expected, kept


def test_a_damaged_digest_file_is_not_used(tmp_path, hashed) -> None:
    file, expected, kept = hashed
    for damage in (b"", b"{}", kept.read_bytes()[:-9], b"[1]", b"\xff"):
        kept.write_bytes(damage)
        assert digest_model(file, tmp_path) == expected


def test_a_pipe_is_ignored_as_digest_file_without_waiting(tmp_path, hashed) -> None:
    file, expected, kept = hashed
    kept.unlink()
    os.mkfifo(kept)
    assert digest_model(file, tmp_path) == expected


@pytest.mark.parametrize("suffix", [".xml", ".bin"])
def test_a_pipe_is_rejected_as_model_without_waiting(start, tmp_path, suffix: str) -> None:
    path = tmp_path / "openvino_model.xml"
    path.write_bytes(b"<net/>")
    path.with_suffix(suffix).unlink(missing_ok=True)
    os.mkfifo(path.with_suffix(suffix))
    with pytest.raises(ModelError, match=rf"openvino_model\{suffix}: not a regular file"):
        start(path, tmp_path / "cache")


def test_a_changed_model_is_compiled_again(start, tiny, tmp_path) -> None:
    folder = shutil.copytree(tiny, tmp_path / "model")
    start(folder, tmp_path / "cache")
    weights = folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    assert start(folder, tmp_path / "cache")[0] == 3


def test_without_a_folder_nothing_is_cached(start, tiny, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert start(tiny, tmp_path, CACHE_DIR="")[0] == 3
    assert not list(tmp_path.iterdir())


def test_the_error_of_a_folder_that_cannot_be_created_has_its_path(start, tiny, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NpuwFault, match="CACHE_DIR"):
        start(tiny, tmp_path / "file" / "cache")


def test_a_full_disk_is_only_a_warning(halves, key, tmp_path, caplog, monkeypatch) -> None:
    cache = halves(tmp_path)

    def refuse(_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr("os.fsync", refuse)
        assert cache.obtain("one", key, lambda: b"program!").program == b"program!"
    assert "No space left" in caplog.text
    assert not list(tmp_path.iterdir())
    assert cache.obtain("one", key, lambda: b"program!").compiled


@pytest.fixture
def as_nobody() -> Iterator[None]:
    """Run as another user, as root may write everywhere."""
    if sys.platform == "win32" or os.getuid() != 0:
        yield
        return
    os.seteuid(65534)
    yield
    os.seteuid(0)


@pytest.fixture
def readable() -> Iterator[Path]:
    """Return a folder that all users can read."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_read_only_folder_returns_its_entries_and_stores_none(
    halves, key, readable, without_compiling, caplog, request
) -> None:
    cache = halves(readable)
    cache.obtain("one", key, lambda: b"program!")
    before = sorted(readable.iterdir())
    readable.chmod(0o555)
    request.getfixturevalue("as_nobody")
    again = halves(readable)
    found = again.obtain("one", key, without_compiling)
    assert (found.program, found.how) == (b"program!", "from cache")
    other = CacheKey({**key.parts, "stage.tokens": "2"})
    assert again.obtain("two", other, lambda: b"other").program == b"other"
    assert "Permission denied; the program is not cached" in caplog.text
    assert sorted(readable.iterdir()) == before


@pytest.fixture
def copied(tiny, tmp_path) -> Path:
    return shutil.copytree(tiny, tmp_path / "model")


def change(folder: Path) -> None:
    """Replace a model's weights by others."""
    other = folder / "other"
    other.write_bytes((folder / "model.safetensors").read_bytes()[:-400] + bytes(400))
    other.replace(folder / "model.safetensors")


@pytest.mark.parametrize("mode", ["OPTIMIZE_SIZE", "OPTIMIZE_SPEED"])
def test_a_model_changed_meanwhile_has_no_entry(start, copied, tmp_path, monkeypatch, mode) -> None:
    """The key has the digest of the old weights; a model with them would load the new ones."""
    real = StaticCompiler.compile

    def compile_and_change(self: StaticCompiler, model: Any, config: Any) -> bytes:
        change(copied)
        return real(self, model, config)

    with monkeypatch.context() as changing:
        changing.setattr(StaticCompiler, "compile", compile_and_change)
        with pytest.raises(ModelError, match="changed after compilation"):
            start(copied, tmp_path / "cache", CACHE_MODE=mode)
    assert not list((tmp_path / "cache").glob("*.blob"))


def test_programs_never_run_with_the_weights_of_another_model(tiny, copied) -> None:
    """A conversation first reads weights at its start; the folder may have changed by then."""
    compiled = Core().compile_model(copied, "NPU", SMALL)
    change(copied)
    with pytest.raises(
        ModelError, match=r"model\.safetensors changed after compilation; compile again"
    ):
        compiled.create_infer_request()
