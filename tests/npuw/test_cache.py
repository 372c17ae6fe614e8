"""The blob cache: the second start compiles nothing, and nothing bad is ever loaded."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npuw_layer import Core
from npuw_layer.adapters.compiler_layer import StaticCompiler
from npuw_layer.blob_cache import BlobCache, drop_pages
from npuw_layer.errors import NpuwFault
from npuw_layer.model_digest import digest_model

SMALL = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_MIN_RESPONSE_LEN": 64}


class Counting(StaticCompiler):
    """Counts what it compiles."""

    def __init__(self) -> None:
        self.compiled = 0

    def compile(self, model: Any, config: Any) -> bytes:
        self.compiled += 1
        return super().compile(model, config)


STAGES = 4
"""Prefill of two sizes, one generate variant, and the head."""


def start(folder: Path, cache: Path, **options: Any) -> tuple[int, np.ndarray]:
    """Compile or load a model; give how many programs were compiled, and some logits."""
    compiler = Counting()
    config = SMALL | {"CACHE_DIR": str(cache)} | options
    compiled = Core(compiler=compiler).compile_model(folder, "NPU", config)
    assert compiled.get_property("LOADED_FROM_CACHE") == (compiler.compiled == 0)
    request = compiled.create_infer_request()
    ids = np.array([[5, 6, 7]])
    mask, positions = np.ones((1, 3), np.int64), np.arange(3)[None]
    found = request.infer({"input_ids": ids, "attention_mask": mask, "position_ids": positions})
    return compiler.compiled, found["logits"]


def test_the_second_start_compiles_nothing_and_says_the_same(tiny, tmp_path) -> None:
    first, logits = start(tiny, tmp_path)
    second, again = start(tiny, tmp_path)
    assert (first, second) == (STAGES, 0)
    assert np.array_equal(logits, again)
    assert len(list(tmp_path.glob("*.blob"))) == STAGES
    assert not list(tmp_path.glob(".*")), "no temporary file stays"


def resident_bytes(path: Path) -> int:
    """How much of a mapped file this process holds in memory."""
    lines = Path("/proc/self/smaps").read_text().splitlines()
    begins = [number for number, line in enumerate(lines) if line.endswith(str(path))]
    sizes = [
        next(line for line in lines[begin:] if line.startswith("Rss:")).split()[1]
        for begin in begins
    ]
    assert sizes, f"{path} is not mapped"
    return 1024 * sum(map(int, sizes))


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux what is in memory")
def test_a_program_whose_pages_are_dropped_is_still_there(tmp_path) -> None:
    cache = BlobCache(tmp_path)
    content = np.random.default_rng(0).bytes(1 << 20)
    cache.write("one", content)
    program = cache.read("one")
    assert program is not None
    assert resident_bytes(tmp_path / "one.blob") >= len(content)
    drop_pages(program)
    assert resident_bytes(tmp_path / "one.blob") == 0
    assert program == content


def test_what_is_not_mapped_keeps_its_memory() -> None:
    for program in (b"whole", memoryview(b"whole")):
        drop_pages(program)
        assert program == b"whole"


ANSWER = """
import sys
from genai_layer import LLMPipeline

model, cache = sys.argv[1:]
lengths = {"MAX_PROMPT_LEN": 64, "MIN_RESPONSE_LEN": 64}
pipe = LLMPipeline(model, "NPU", CACHE_DIR=cache, **lengths)
pipe.generate("What is an NPU?", max_new_tokens=2)
print(*sys.modules)
"""

NEEDED_TO_RUN = {"elements", "errors", "files", "garbage", "weights"}
"""What there is of the compiler without graphs."""


def modules_that_answer(model: Path, cache: Path) -> set[str]:
    """Answer a question in a process of its own; give the modules that it loaded."""
    argv = [sys.executable, "-c", ANSWER, str(model), str(cache)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return set(done.stdout.split())


def test_a_warm_start_loads_no_compiler(demo, tmp_path) -> None:
    cold, warm = (modules_that_answer(demo, tmp_path) for _ in range(2))
    assert {"xdsl", "compiler_layer.pipeline"} <= cold, "what is to be left out has these names"
    assert not {name for name in warm if name.split(".")[0] == "xdsl"}
    loaded = {name.partition(".")[2] for name in warm if name.startswith("compiler_layer.")}
    assert loaded <= NEEDED_TO_RUN


def test_a_model_is_hashed_once_and_again_when_it_changes(tmp_path, monkeypatch) -> None:
    hashed: list[str] = []
    real = hashlib.file_digest

    def counted(file: Any, kind: str) -> Any:
        hashed.append(Path(file.name).name)
        return real(file, kind)

    monkeypatch.setattr(hashlib, "file_digest", counted)
    model = tmp_path / "model"
    model.mkdir()
    for name in ("config.json", "a.safetensors"):
        (model / name).write_bytes(b"old")
        os.utime(model / name, ns=(1, 1))
    settled = time.time_ns() + 10**10
    monkeypatch.setattr(time, "time_ns", lambda: settled)
    first = digest_model(model, tmp_path)
    assert hashed == ["config.json", "a.safetensors"]
    assert digest_model(model, tmp_path) == first
    assert len(hashed) == 2, "hashed once"
    (model / "a.safetensors").write_bytes(b"new")
    os.utime(model / "a.safetensors", ns=(1, 1))  # as if nothing had happened
    assert digest_model(model, tmp_path) != first
    assert hashed[2:] == ["a.safetensors"]


def test_a_file_that_was_just_written_is_hashed_each_time(tmp_path) -> None:
    """Its next change might bear the same time."""
    (tmp_path / "openvino_model.xml").write_bytes(b"<net/>")
    digest_model(tmp_path / "openvino_model.xml", tmp_path)
    assert not list(tmp_path.glob("*.digest"))


def test_a_damaged_hash_is_not_used(tmp_path, monkeypatch) -> None:
    file = tmp_path / "openvino_model.xml"
    file.write_bytes(b"<net/>")
    settled = time.time_ns() + 10**10
    monkeypatch.setattr(time, "time_ns", lambda: settled)
    expected = digest_model(file, tmp_path)
    (kept,) = tmp_path.glob("*.digest")
    for damage in (b"", b"{}", kept.read_bytes()[:-9], b"[1]", b"\xff"):
        kept.write_bytes(damage)
        assert digest_model(file, tmp_path) == expected


@pytest.mark.parametrize(
    "options",
    [
        {"INFERENCE_PRECISION_HINT": "f32"},
        {"NPU_PLATFORM": "3720"},
        {"NPU_TILES": 1},
        {"NPUW_LLM_MAX_PROMPT_LEN": 128},
    ],
)
def test_what_changes_a_program_is_part_of_the_key(tiny, tmp_path, options) -> None:
    start(tiny, tmp_path)
    assert start(tiny, tmp_path, **options)[0] == STAGES
    assert start(tiny, tmp_path)[0] == 0


def test_a_changed_model_is_compiled_anew(tiny, tmp_path) -> None:
    folder = shutil.copytree(tiny, tmp_path / "model")
    start(folder, tmp_path / "cache")
    weights = folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    assert start(folder, tmp_path / "cache")[0] == STAGES


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: content[:100] + bytes([content[100] ^ 1]) + content[101:],
        lambda content: content[:-1] + b"?",
        lambda content: b"junk",
    ],
)
def test_a_damaged_file_is_compiled_anew(tiny, tmp_path, damage) -> None:
    _, logits = start(tiny, tmp_path)
    one = min(tmp_path.glob("*.blob"))
    one.write_bytes(damage(one.read_bytes()))
    compiled, again = start(tiny, tmp_path)
    assert compiled == 1
    assert np.array_equal(logits, again)
    assert start(tiny, tmp_path)[0] == 0, "and is whole again"


def test_without_a_folder_nothing_is_kept(tiny, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    compiler = Counting()
    Core(compiler=compiler).compile_model(tiny, "NPU", SMALL)
    assert compiler.compiled == STAGES
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_named(tiny, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NpuwFault, match="CACHE_DIR"):
        start(tiny, tmp_path / "file" / "cache")


def test_a_full_disk_is_not_the_users_problem(tmp_path, caplog, monkeypatch) -> None:
    cache = BlobCache(tmp_path)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    cache.write("key", b"program")
    assert "No space left" in caplog.text
    assert cache.read("key") is None
