"""A second compiler, to show that npuw is independent of the compiler.

It shares the frontends and passes, with a trivial schedule: one tile, one DMA port, and each task
waits for the previous one; nothing runs in parallel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from compiler_layer.emit.blob import Program, emit_blob
from compiler_layer.errors import CompilerError
from compiler_layer.model import Model
from compiler_layer.pipeline import Options, lower
from compiler_layer.schedule.barriers import assign_barriers, queues_of
from compiler_layer.schedule.in_place import order_in_place
from compiler_layer.schedule.place_ddr import lifetimes, place_ddr
from compiler_layer.schedule.program import Phase, Run, ScheduledProgram
from driver_layer.abi.platforms import PLATFORMS
from npuw_layer.errors import ModelError


class SerialCompiler:
    """Compiler with a serial schedule; satisfies ``npuw_layer.backends.protocols.Compiler``."""

    version = "serial 1"

    def __init__(self) -> None:
        self.compiled = 0

    def foldings(self, model: Model) -> Iterator[Model]:
        yield model

    def compile(self, model: Model, config: Mapping[str, str]) -> bytes:
        platform = PLATFORMS[config["NPU_PLATFORM"]]
        options = Options(config["INFERENCE_PRECISION_HINT"], platform.name, tiles=1, fold=False)
        try:
            lower(model, options)
        except CompilerError as error:
            raise ModelError(str(error)) from error
        # Variables may stay in place even if that is not required.
        placed, ordered = order_in_place(model, platform)
        tasks = ordered.tasks
        scratch = place_ddr(lifetimes(tasks))
        one_by_one = [{number - 1} if number else set() for number in range(len(tasks))]
        queues = queues_of(tasks, ports=1)
        schedule = assign_barriers(tasks, one_by_one, platform.barriers_per_tile, queues)
        self.compiled += 1
        phases = [Phase(schedule, [Run({}, 0)])]
        program = ScheduledProgram(placed, model.inputs, model.outputs, phases, scratch)
        return emit_blob(Program("serial", program, platform, 1))
