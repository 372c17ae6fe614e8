"""Choice of an engine: native code, or the reference engines in numpy."""

from __future__ import annotations

import os

from driver_layer.engines.executor import Executor
from driver_layer.errors import EngineError

ENGINE_VARIABLE = "NPU_ENGINE"
ENGINES = ("native", "reference")


def choose_executor(name: str | None = None) -> Executor:
    """Create the executor that a name selects.

    Args:
        name: one of ``ENGINES``; by default the environment's ``NPU_ENGINE``, else native.

    Raises:
        EngineError: no engine has this name.
    """
    chosen = name or os.environ.get(ENGINE_VARIABLE) or ENGINES[0]
    # Imported on demand: the reference engines need no compiler.
    if chosen == "reference":
        from driver_layer.engines.reference import ReferenceEngines
        from driver_layer.engines.task_by_task import TaskByTask

        return TaskByTask(ReferenceEngines())
    if chosen == "native":
        from driver_layer.engines.native import NativeExecutor

        return NativeExecutor()
    raise EngineError(f"{ENGINE_VARIABLE}={chosen}: unknown engine; use {' or '.join(ENGINES)}")
