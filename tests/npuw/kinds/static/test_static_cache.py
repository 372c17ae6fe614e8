"""The blob cache of static models: a program and its initial values are cached together."""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npuw_layer import Core, StaticCompiledModel
from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.storage.container import STAGE, describe, read_container, write_container
from npuw_layer.storage.manifest import EntryManifest

EXACT = {"INFERENCE_PRECISION_HINT": "f32"}

Start = Callable[..., tuple[int, StaticCompiledModel]]


class Counting(StaticCompiler):
    """Compiler that counts compilations."""

    def __init__(self) -> None:
        self.compiled = 0

    def compile(self, model: Any, config: Any) -> bytes:
        self.compiled += 1
        return super().compile(model, config)


@pytest.fixture
def start(tmp_path) -> Start:
    """Return a function that compiles or loads a model, and counts compilations."""

    def begin(path: Path, **options: object) -> tuple[int, StaticCompiledModel]:
        compiler = Counting()
        config = EXACT | {"CACHE_DIR": str(tmp_path)} | options
        compiled = Core(compiler=compiler).compile_model(path, "NPU", config)
        assert isinstance(compiled, StaticCompiledModel)
        return compiler.compiled, compiled

    return begin


@pytest.fixture
def models(classify, recur) -> Mapping[str, Any]:
    return {"classifier": classify, "recurrent": recur}


def answers(compiled: StaticCompiledModel, model: Any) -> list[Mapping[str, np.ndarray]]:
    """Run three inferences, to see initial and later values of variables."""
    request = compiled.create_infer_request()
    found = [request.infer(model.inputs(seed)) for seed in range(3)]
    return [{str(name): values.copy() for name, values in one.items()} for one in found]


def assert_same(found: list[Mapping[str, np.ndarray]], model: Any) -> None:
    for one, other in zip(found, answers(model.compiled, model), strict=True):
        assert one.keys() == other.keys()
        assert all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("name", ["classifier", "recurrent"])
def test_a_second_start_compiles_nothing_and_computes_the_same_bits(start, models, name) -> None:
    model = models[name]
    for compiled in (1, 0):
        count, loaded = start(model.path)
        assert count == compiled
        assert loaded.get_property("LOADED_FROM_CACHE") == (not compiled)
        assert_same(answers(loaded, model), model)
    count, _ = start(model.path, CACHE_DIR="")
    assert count == 1


DAMAGE: list[Callable[[bytes], bytes]] = [
    lambda content: b"",
    lambda content: content[: len(content) // 2],
    lambda content: content[:4200] + bytes([content[4200] ^ 1]) + content[4201:],
    lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    lambda content: b"junk",
]


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("which", ["program", "initial values"])
def test_a_damaged_entry_is_compiled_again(start, recur, tmp_path, caplog, damage, which) -> None:
    start(recur.path)
    values, program = sorted(tmp_path.glob("*.blob"), key=lambda path: path.stat().st_size)
    entry = program if which == "program" else values
    entry.write_bytes(damage(entry.read_bytes()))
    with caplog.at_level(logging.WARNING):
        count, loaded = start(recur.path)
    assert f"{entry} is not used: " in caplog.text or f"{entry} cannot be read" in caplog.text
    assert count == (which == "program")
    assert not loaded.get_property("LOADED_FROM_CACHE")
    assert_same(answers(loaded, recur), recur)
    assert start(recur.path)[1].get_property("LOADED_FROM_CACHE"), "the entry is valid again"


def test_a_lost_entry_is_compiled_again(start, recur, tmp_path) -> None:
    start(recur.path)
    for entry in sorted(tmp_path.glob("*.blob")):
        entry.unlink()
        _, loaded = start(recur.path)
        assert not loaded.get_property("LOADED_FROM_CACHE")
        assert_same(answers(loaded, recur), recur)


def test_equivalent_options_share_an_entry_and_others_do_not(start, classify) -> None:
    start(classify.path)
    same = {"NPU_TILES": 0, "NPU_PLATFORM": 4000, "NPUW_LLM_MAX_PROMPT_LEN": 64}
    assert start(classify.path, **same)[0] == 0
    for other in ({"NPU_TILES": 1}, {"INFERENCE_PRECISION_HINT": "f16"}, {"NPUW_FOLD": "NO"}):
        assert start(classify.path, **other)[0] == 1, other


def test_a_copied_model_shares_the_entry_a_changed_one_not(start, classify, tmp_path) -> None:
    start(classify.path)
    copy = shutil.copytree(classify.path.parent, tmp_path / "copy") / classify.path.name
    count, loaded = start(copy)
    assert count == 0
    assert_same(answers(loaded, classify), classify)
    weights = copy.with_suffix(".bin")
    content = bytearray(weights.read_bytes())
    content[0] ^= 1
    weights.write_bytes(content)
    assert start(copy)[0] == 1


START = """
import sys
from npuw_layer import Core
config = {"INFERENCE_PRECISION_HINT": "f32", "CACHE_DIR": sys.argv[2]}
compiled = Core().compile_model(sys.argv[1], "NPU", config)
assert compiled.get_property("LOADED_FROM_CACHE")
compiled.create_infer_request().infer()
print(*sys.modules)
"""


def test_a_warm_start_loads_no_compiler(start, recur, tmp_path) -> None:
    start(recur.path)
    argv = [sys.executable, "-c", START, str(recur.path), str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert not {name for name in done.stdout.split() if name.split(".")[0] == "xdsl"}


@pytest.mark.parametrize("name", ["classifier", "recurrent"])
def test_intact_but_unusable_entries_are_compiled_again(
    start, models, name, tmp_path, caplog
) -> None:
    model = models[name]
    start(model.path)
    for path in tmp_path.glob("*.blob"):
        entry = read_container(memoryview(path.read_bytes()), STAGE, EntryManifest)
        with path.open("wb") as file:
            part = describe(entry.manifest.parts[0].name, b"junk", ())
            key = entry.manifest.key
            write_container(file, STAGE, EntryManifest(parts=(part,), key=key), [b"junk"])
    assert_same(answers(start(model.path)[1], model), model)
    assert caplog.text.count("is intact, but cannot be used") == 2
    assert start(model.path)[0] == 0
