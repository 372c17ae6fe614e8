"""What a model will take, from how its ops are to be cut: nothing is scheduled, no blob is written.

How it works. The passes run as they do for a blob, the ``tile`` pass among them, which chooses how
each op is cut by a closed-form price. That price is what is added up here, op after op: it knows
how loads and work overlap within an op, not that an op's first load may overlap the op before.
Tasks are counted the same way, and their records make the blob's size. Intermediate tensors are
placed in DDR as the scheduler places them.

How far to trust it: ``tests/npuw/test_plan.py`` compares it with compiled blobs.

    owners   whose work an op is: that of a layer, or of what is before or behind them
    clock    when ops begin and end
    copies   what ops take that are not tiled
    scratch  how long intermediate tensors live
    part     what ops take together
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from compiler_layer.dialects.ov.constant_value import FileAttr
from compiler_layer.estimate.clock import Clock
from compiler_layer.estimate.copies import price_copies
from compiler_layer.estimate.owners import LayerOf, Owners
from compiler_layer.estimate.part import Part
from compiler_layer.estimate.scratch import spans_of
from compiler_layer.model import Model
from compiler_layer.passes.tile import Tile
from compiler_layer.passes.tile.machine import Machine, Price
from compiler_layer.passes.tile.tiling import price_of
from compiler_layer.pipeline import Options, passes, run_passes
from compiler_layer.rewriting.state import ASSIGN_PREFIX, READ_PREFIX
from compiler_layer.schedule.layout import HardwareOp, layout
from compiler_layer.schedule.place_ddr import place_ddr

__all__ = ["Estimate", "Part", "estimate"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a static model takes, layer by layer."""

    parts: tuple[Part, ...]
    """Before the layers; each of them; behind them."""
    scratch_bytes: int
    """Intermediate tensors in DDR."""
    port_bytes: Mapping[str, int]
    """Inputs and outputs, states among them, by name."""

    def whole(self, counts: Sequence[int]) -> Part:
        """All of a model in which each layer here stands for so many."""
        before, *layers, behind = self.parts
        repeated = (part.times(count) for part, count in zip(layers, counts, strict=True))
        return sum(repeated, before + behind)


def estimate(model: Model, options: Options, layers: int, layer_of: LayerOf) -> Estimate:
    """Estimate what a static model takes.

    Args:
        model: consumed, as by ``compile_model``; not folded.
        options: as for ``compile_model``; weights are never counted.
        layers: how many it has.
        layer_of: says whose its weights are.

    Raises:
        CompilerError: as ``compile_model``.
    """
    tile = Tile(options.platform, options.tiles)
    machine = Machine(tile.device(), tile.used_tiles())
    run_passes(model, passes(replace(options, fold=False, weightless=False)), options)
    laid_out = layout(model)
    owners = Owners(layer_of, layers)
    parts = [Part() for _ in range(layers + 2)]
    clock = Clock()
    ended = 0.0
    numbers: list[int] = []
    for op in laid_out.ops:
        owner, price = owners.of(op), _price(op, machine)
        numbers.append(owner)
        end = max(ended, clock.end_of(op, price))
        parts[owner] += Part(ns=end - ended, price=price, ops=1)
        ended = end
    for buffer, owner in owners.constants.items():
        held = buffer.constant is not None and isinstance(buffer.constant.value, FileAttr)
        parts[owner] += Part(ports=1) if held else Part(constant_bytes=buffer.nbytes)
    for buffer, owner in owners.ports.items():
        own = not buffer.name.startswith((READ_PREFIX, ASSIGN_PREFIX))
        parts[owner] += Part(ports=1, own_ports=int(own))
    scratch_bytes = place_ddr(spans_of(laid_out, numbers, layers))
    port_bytes = {buffer.name: buffer.nbytes for buffer in owners.ports}
    return Estimate(tuple(parts), scratch_bytes, port_bytes)


def _price(op: HardwareOp, machine: Machine) -> Price:
    priced = None if op.op is None else price_of(op.op, machine)
    return priced or price_copies(op, machine.platform)
