"""Compilation of a model to blobs: passes, schedule, bytes. Begin with ``compile_model``.

``compile_parts`` and ``compile_function`` compile parts that run repeatedly with other weights, so
that a device holds the weights of a few repetitions only (NPUW's weight offload). ``pipeline``,
which lists the passes, does not import this module: predicting a model or writing its graph needs
no schedule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.emit.blob import Program, emit_blob
from compiler_layer.errors import NotPeriodic
from compiler_layer.model import Model, ModelNames
from compiler_layer.partition.compiled import LITERAL_PREFIX, CompiledFunction, CompiledParts
from compiler_layer.partition.repeated.attributes import kept_repetitions, repeated_ids
from compiler_layer.partition.repeated.cut import cut_at_block
from compiler_layer.partition.repeated.fold import folded
from compiler_layer.passes.fold_blocks import FoldBlocks
from compiler_layer.passes.lower_attention import LowerAttention
from compiler_layer.passes.tile import Tile
from compiler_layer.pipeline import AFTER, Observer, Options, passes, remaining, run_passes
from compiler_layer.rewriting.garbage import collected_later
from compiler_layer.rewriting.state import ASSIGN_PREFIX, READ_PREFIX
from compiler_layer.schedule.build import schedule
from compiler_layer.schedule.in_place import stays_in_place
from compiler_layer.schedule.program import ScheduledProgram


def compile_model(
    model: Model,
    options: Options,
    name: str = "main",
    observer: Observer | None = None,
    names: ModelNames | None = None,
) -> bytes:
    """Compile a model to a blob.

    Args:
        model: consumed: the passes rewrite it.
        options: every other input that determines the result.
        name: the name in the blob's metadata.
        observer: receives the model after each pass.
        names: names of parameters and results in the blob's metadata; the ports' by default.

    Raises:
        NotPeriodic: the model was folded before, and its layers differ after the passes.
        CompilerError: the model is not supported, or does not fit the device.
    """
    with collected_later():
        machine = Tile(options.platform, options.tiles)
        scheduled = _lower_and_schedule(model, options, observer)
        device, tiles = machine.device(), machine.used_tiles()
        named = names or ModelNames()
        return emit_blob(Program(name, scheduled, device, tiles, named, options.profiling))


def _lower_and_schedule(
    model: Model, options: Options, observer: Observer | None
) -> ScheduledProgram:
    """Lower and schedule a model, with as few unfolded layers as possible."""
    machine = Tile(options.platform, options.tiles)
    platform, tiles = machine.device(), machine.used_tiles()
    in_place = options.state_in_place and stays_in_place(model)
    wanted = passes(replace(options, fold=False))
    may_fold = options.fold and not in_place and not options.strided
    for smaller in foldings(model) if may_fold else ():
        try:
            if observer is not None:
                observer(FoldBlocks.name, smaller)
            run_passes(smaller, wanted, options, observer)
            return schedule(smaller, platform, tiles)
        except NotPeriodic:
            continue  # retry with more layers, at last with all
    run_passes(model, remaining(model, wanted), options, observer)
    return schedule(model, platform, tiles, in_place, options.strided)


def foldings(model: Model) -> Iterator[Model]:
    """Yield a model reduced to its first and last layer; then to its first two and its last.

    Yield nothing if the model has no three equal layers, or passes have already run on it.
    ``compile_model`` folds by itself; a caller that compiles variants may fold a model before.
    """
    if kept_repetitions(model) is not None or AFTER in model.module.attributes:
        return
    for both_first in (False, True):
        smaller = folded(model, both_first)
        if smaller is not None:
            yield smaller


def compile_parts(model: Model, options: Options) -> CompiledParts:
    """Cut a model at its repeated block and compile the parts.

    Args:
        model: folded with its first two repetitions (``folded``); consumed.
        options: see ``compile_model``; blobs are always weightless.

    Raises:
        NotPeriodic: the model has no repeated block, or cannot be cut there.
        CompilerError: the model is not supported, or does not fit the device.
    """
    options = replace(options, weightless=True, fold=False)
    wanted = passes(options)
    # LowerAttention derives ``reach`` from the ops that compute masks, which are in no block.
    whole = 1 + [each.name for each in wanted].index(LowerAttention.name)
    with collected_later():
        run_passes(model, wanted[:whole], options)
        parts = cut_at_block(model)
        for part in (parts.prologue, parts.block, parts.epilogue):
            run_passes(part, wanted[whole:], options)
        literals = _separate_literals(parts.block)
        return CompiledParts(
            prologue=_blob(parts.prologue, options, "prologue"),
            block=_blob(parts.block, options, "block"),
            epilogue=_blob(parts.epilogue, options, "epilogue"),
            count=parts.count,
            states=_in_each_repetition(parts.block, (READ_PREFIX, ASSIGN_PREFIX)),
            weights=_in_each_repetition(parts.block, ("",)),
            literals=literals,
        )


def compile_function(model: Model, options: Options) -> CompiledFunction:
    """Compile a part that is called several times, with other weights for each call.

    Args:
        model: static and pure; a constant that differs between calls holds one value per call
            (``partition.functions``); consumed.
        options: see ``compile_model``; the blob is always weightless.

    Raises:
        CompilerError: the part is not supported, or does not fit the device.
    """
    options = replace(options, weightless=True, fold=False)
    with collected_later():
        run_passes(model, passes(options), options)
        literals = _separate_literals(model)
        weights = _in_each_repetition(model, ("",))
        return CompiledFunction(_blob(model, options, "function"), weights, literals)


def _in_each_repetition(block: Model, prefixes: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the names of a block's inputs and outputs in each of its repetitions."""
    names = {port.name for port in (*block.inputs, *block.outputs)}
    return {
        prefix + ids[0]: tuple(prefix + each for each in ids)
        for ids in repeated_ids(block)
        for prefix in prefixes
        if prefix + ids[0] in names
    }


def _separate_literals(block: Model) -> dict[str, tuple[bytes, ...]]:
    """Turn repeated constants without a file (small weights) into inputs; return the values."""
    literals: dict[str, tuple[bytes, ...]] = {}
    names = [port.name for port in block.inputs]
    for op in [each for each in block.body.ops if isinstance(each, Constant) and each.is_repeated]:
        name = f"{LITERAL_PREFIX}{len(literals)}"
        literals[name] = tuple(
            bytes(op.of_repetition(number).stored()) for number in range(op.repetitions)
        )
        argument = block.body.insert_arg(op.output.type, len(block.body.args))
        names.append(name)
        op.output.replace_all_uses_with(argument)
        op.detach()
    block.set_inputs(names)
    return literals


def _blob(part: Model, options: Options, name: str) -> bytes:
    machine = Tile(options.platform, options.tiles)
    platform, tiles = machine.device(), machine.used_tiles()
    return emit_blob(Program(name, schedule(part, platform, tiles), platform, tiles))
