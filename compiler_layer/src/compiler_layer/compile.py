"""The whole way from a model to a blob: passes, schedule, bytes.

It is not in ``pipeline``, as who predicts what a model takes, or writes its graph, needs passes
alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from compiler_layer.emit.blob import Program, emit_blob
from compiler_layer.errors import NotPeriodic
from compiler_layer.garbage import collected_later
from compiler_layer.model import Model
from compiler_layer.passes.fold_blocks import FoldBlocks, folded
from compiler_layer.passes.tile import Tile
from compiler_layer.pipeline import AFTER, Observer, Options, passes, remaining, run_passes
from compiler_layer.repetition import kept_repetitions
from compiler_layer.schedule.build import schedule
from compiler_layer.schedule.in_place import stays_in_place
from compiler_layer.schedule.program import ScheduledProgram


def compile_model(
    model: Model, options: Options, name: str = "main", observer: Observer | None = None
) -> bytes:
    """Compile a model to a blob.

    Args:
        model: consumed: the passes rewrite it.
        options: what the result depends on besides.
        name: stands in the blob's metadata.
        observer: sees the model after each pass.

    Raises:
        NotPeriodic: it was folded before, and its layers have become different.
        CompilerError: the model is not supported, or does not fit the device.
    """
    with collected_later():
        machine = Tile(options.platform, options.tiles)
        scheduled = _lower_and_schedule(model, options, observer)
        return emit_blob(Program(name, scheduled, machine.device(), machine.used_tiles()))


def _lower_and_schedule(
    model: Model, options: Options, observer: Observer | None
) -> ScheduledProgram:
    """Lower a model as small as it can be folded, and schedule all of it."""
    machine = Tile(options.platform, options.tiles)
    platform, tiles = machine.device(), machine.used_tiles()
    in_place = options.state_in_place and stays_in_place(model)
    wanted = passes(replace(options, fold=False))
    for smaller in foldings(model) if options.fold and not in_place else ():
        try:
            if observer is not None:
                observer(FoldBlocks.name, smaller)
            run_passes(smaller, wanted, options, observer)
            return schedule(smaller, platform, tiles)
        except NotPeriodic:
            continue  # with more of the layers, or all of them
    run_passes(model, remaining(model, wanted), options, observer)
    return schedule(model, platform, tiles, in_place)


def foldings(model: Model) -> Iterator[Model]:
    """Give a model with its first and last layer; then with its first two and its last.

    Nothing, if it has no three equal layers, or has been through passes already. ``compile_model``
    does this by itself; who compiles variants of a model may fold it once before.
    """
    if kept_repetitions(model) is not None or AFTER in model.module.attributes:
        return
    for both_first in (False, True):
        smaller = folded(model, both_first)
        if smaller is not None:
            yield smaller
