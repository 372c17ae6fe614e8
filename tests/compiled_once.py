"""Stages of split models are compiled, and their graphs checked, once in a run of the tests.

Most tests ask what a program does and not how it is compiled, yet hundreds compile the same small
models with the same options. Two results of compiling a stage are kept under its key of CACHE_DIR,
which names all that they depend on: its program, and that its graph passed ``check-lengths``, which
takes about as long. Programs are compiled as ever where compiling leaves more than a program: by a
device or a compiler of a test, by a device that cuts models or records their compilation, in
CACHE_DIR, and while a test reads the log.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest

from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.backends.interpreter import InterpreterDevice
from npuw_layer.backends.level_zero import LevelZeroDevice
from npuw_layer.llm.plan.stages import Stage
from npuw_layer.llm.programs import ProgramMaker
from npuw_layer.storage.cache.key import CacheKey

_COMPILED = ProgramMaker._compiled
_COMPILERS = [each.compile for each in (StaticCompiler, LevelZeroDevice, InterpreterDevice)]

_OF_DEVICES = ("device", "place")
"""Parts of a key that no graph depends on."""


@contextmanager
def stages_compiled_once(folder: Path) -> Iterator[None]:
    """Keep the programs of stages, and names of checked ones, in a folder of several processes."""
    folder.mkdir(exist_ok=True)

    def compiled(maker: ProgramMaker, stage: Stage) -> bytes:
        key = maker._key(stage)
        path = folder / f"{key.name}.program"
        if not _is_usual(maker):
            return checked_once(maker, stage, key)
        if not path.exists():
            _write(path, checked_once(maker, stage, key))
        return path.read_bytes()

    def checked_once(maker: ProgramMaker, stage: Stage, key: CacheKey) -> bytes:
        parts = {name: part for name, part in key.parts.items() if name not in _OF_DEVICES}
        path = folder / f"{CacheKey(parts).name}.checked"
        like = stage.kind, stage.past > 0
        if path.exists():
            maker._checked.add(like)
        known = like in maker._checked
        program = _COMPILED(maker, stage)
        if not known:
            path.touch()
        return program

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ProgramMaker, "_compiled", compiled)
        yield


def _is_usual(maker: ProgramMaker) -> bool:
    """Return whether a stage's program is all that compiling it leaves."""
    device = maker._device
    if type(device) is LevelZeroDevice:
        own = type(device._compiler) is StaticCompiler
    else:
        own = type(device) is InterpreterDevice
    compilers = [each.compile for each in (StaticCompiler, LevelZeroDevice, InterpreterDevice)]
    reads_log = logging.getLogger("npuw_layer").isEnabledFor(logging.INFO)
    return own and compilers == _COMPILERS and maker._folder is None and not reads_log


def _write(path: Path, program: bytes) -> None:
    """Write a program; another process finds all of it or nothing."""
    with NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(program)
    os.replace(file.name, path)
