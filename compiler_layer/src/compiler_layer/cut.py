"""Compiles what is run many times, with other weights each time: a repeated block, a function.

The block's weights are inputs, as are those of the other pieces (``compiler_layer.weights``); what
they are in each repetition is told beside the blob. So a device needs to hold the weights of a few
repetitions only: the others are brought while it computes (npuw's weight offload).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.emit.blob import Program, emit_blob
from compiler_layer.garbage import collected_later
from compiler_layer.model import Model
from compiler_layer.passes.cut_blocks import cut_blocks
from compiler_layer.passes.lift_state import ASSIGN_PREFIX, READ_PREFIX
from compiler_layer.passes.lower_attention import LowerAttention
from compiler_layer.passes.tile import Tile
from compiler_layer.pieces import LITERAL_PREFIX, CompiledFunction, CompiledPieces
from compiler_layer.pipeline import Options, passes, run_passes
from compiler_layer.repetition import repeated_ids
from compiler_layer.schedule.build import schedule


def compile_pieces(model: Model, options: Options) -> CompiledPieces:
    """Cut a model at its repeated block and compile the pieces.

    Args:
        model: folded with its first two repetitions (``fold_blocks.folded``); consumed.
        options: as for ``pipeline.compile_model``; blobs are always weightless.

    Raises:
        NotPeriodic: the model repeats no block, or cannot be cut there.
        CompilerError: the model is not supported, or does not fit the device.
    """
    options = replace(options, weightless=True, fold=False)
    wanted = passes(options)
    # How far masks reach is seen where they are made, which is not in the block.
    whole = 1 + [each.name for each in wanted].index(LowerAttention.name)
    with collected_later():
        run_passes(model, wanted[:whole], options)
        pieces = cut_blocks(model)
        for piece in (pieces.prologue, pieces.block, pieces.epilogue):
            run_passes(piece, wanted[whole:], options)
        literals = _separate_literals(pieces.block)
        return CompiledPieces(
            prologue=_blob(pieces.prologue, options, "prologue"),
            block=_blob(pieces.block, options, "block"),
            epilogue=_blob(pieces.epilogue, options, "epilogue"),
            count=pieces.count,
            states=_in_each_repetition(pieces.block, (READ_PREFIX, ASSIGN_PREFIX)),
            weights=_in_each_repetition(pieces.block, ("",)),
            literals=literals,
        )


def compile_function(model: Model, options: Options) -> CompiledFunction:
    """Compile a part of a model that is called several times, with other weights each time.

    Args:
        model: static and pure; its constants have a value for each call, where these differ
            (``passes.partition.equal``); consumed.
        options: as for ``pipeline.compile_model``; the blob is always weightless.

    Raises:
        CompilerError: it is not supported, or does not fit the device.
    """
    options = replace(options, weightless=True, fold=False)
    with collected_later():
        run_passes(model, passes(options), options)
        literals = _separate_literals(model)
        weights = _in_each_repetition(model, ("",))
        return CompiledFunction(_blob(model, options, "function"), weights, literals)


def _in_each_repetition(block: Model, prefixes: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The names that inputs and outputs of a block have in each of its repetitions."""
    names = {port.name for port in (*block.inputs, *block.outputs)}
    return {
        prefix + group[0]: tuple(prefix + each for each in group)
        for group in repeated_ids(block)
        for prefix in prefixes
        if prefix + group[0] in names
    }


def _separate_literals(block: Model) -> dict[str, tuple[bytes, ...]]:
    """Make inputs of what differs by repetition and is in no file, as small weights may be."""
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


def _blob(piece: Model, options: Options, name: str) -> bytes:
    machine = Tile(options.platform, options.tiles)
    platform, tiles = machine.device(), machine.used_tiles()
    return emit_blob(Program(name, schedule(piece, platform, tiles), platform, tiles))
