"""The choice of an engine: native code, or the reference engines in numpy."""

from __future__ import annotations

import os

from driver_layer.engines.executor import Executor
from driver_layer.errors import EngineError

ENGINE_VARIABLE = "NPU_ENGINE"
ENGINES = ("native", "reference")


def choose_executor(name: str | None = None) -> Executor:
    """Make the executor of programs.

    Args:
        name: one of ``ENGINES``; the environment's ``NPU_ENGINE`` if not given, else native.

    Raises:
        EngineError: there is no such engine.
    """
    chosen = name or os.environ.get(ENGINE_VARIABLE) or ENGINES[0]
    # Imported when they are wanted: numpy alone, or a compiler.
    if chosen == "reference":
        from driver_layer.engines.reference import ReferenceEngines
        from driver_layer.engines.task_by_task import TaskByTask

        return TaskByTask(ReferenceEngines())
    if chosen == "native":
        from driver_layer.engines.native import NativeExecutor

        return NativeExecutor()
    raise EngineError(f"{ENGINE_VARIABLE}={chosen}: no such engine; there are {', '.join(ENGINES)}")
