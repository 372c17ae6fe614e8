"""A run of the tests compiles a stage once, unless compiling leaves more than its program."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.compiled_once import stages_compiled_once
from tests.npuw.faulty_device import FaultyDevice

from compiler_layer.model import Model
from npuw_layer import Core
from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.backends.interpreter import InterpreterDevice

SHORT = {"NPUW_LLM_MAX_PROMPT_LEN": 16, "NPUW_LLM_MIN_RESPONSE_LEN": 64}
Compile = Callable[..., None]


@pytest.fixture
def compile_tiny(tiny: Path) -> Compile:
    def compiled(core: Core | None = None, **options: Any) -> None:
        (core or Core()).compile_model(tiny, "NPU", SHORT | options)

    return compiled


def kept(folder: Path, kind: str) -> set[str]:
    return {path.name for path in folder.glob(f"*.{kind}")}


def test_the_second_model_compiles_nothing(
    compile_tiny: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[Model] = []
    compile_one = StaticCompiler.compile

    def counting(compiler: StaticCompiler, model: Model, config: Any) -> bytes:
        compiled.append(model)
        return compile_one(compiler, model, config)

    with stages_compiled_once(tmp_path):
        compile_tiny()
        programs = kept(tmp_path, "program")
        monkeypatch.setattr(StaticCompiler, "compile", counting)
        compile_tiny()
        assert len(compiled) == len(programs), "a test that replaces the compiler finds it called"
        monkeypatch.undo()
        compile_tiny()
    assert kept(tmp_path, "program") == programs


def test_a_graph_is_checked_once_for_all_devices(compile_tiny: Compile, tmp_path: Path) -> None:
    with stages_compiled_once(tmp_path):
        compile_tiny()
        checked = kept(tmp_path, "checked")
        compile_tiny(NPUW_DEVICES="CPU")
        assert kept(tmp_path, "checked") == checked
        compile_tiny(KV_CACHE_PRECISION="i8")
        assert kept(tmp_path, "checked") > checked


def test_no_program_is_kept_where_more_is_observed(
    compile_tiny: Compile, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with stages_compiled_once(tmp_path / "kept"):
        compile_tiny(Core(device=FaultyDevice(InterpreterDevice())))
        compile_tiny(CACHE_DIR=str(tmp_path / "cache"))
        compile_tiny(NPUW_DEVICES="CPU,NPU")
        with caplog.at_level(logging.INFO):
            compile_tiny()
    assert not kept(tmp_path / "kept", "program")
