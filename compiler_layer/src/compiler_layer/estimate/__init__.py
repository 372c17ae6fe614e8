"""Estimate of a model's time, tasks and memory from its tiling, without scheduling or a blob.

The passes run as they do for a blob. Among them, ``tile`` chooses the blocks of each op by a
closed-form price, and this estimate adds up these prices op by op. A price covers the overlap of
loads and work within an op, but not the overlap of an op's first load with the op before. Task
counts add up the same way, and the size of their records is the blob's size. Intermediate tensors
are placed in DDR as the scheduler places them.

Accuracy: ``tests/npuw/plan/test_plan.py`` compares estimates with compiled blobs.

    owners   the layer that an op belongs to, or the ops before or behind the layers; lifetimes of
             intermediate tensors
    clock    begin and end times of ops
    part     sums over the ops of a layer
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.constant_value import FileAttr
from compiler_layer.emit.dma import runs
from compiler_layer.estimate.clock import Clock
from compiler_layer.estimate.owners import LayerOf, Owners, spans_of
from compiler_layer.estimate.part import LayerSum
from compiler_layer.model import Model
from compiler_layer.passes.tile import Tile
from compiler_layer.passes.tile.machine import Machine, Price
from compiler_layer.passes.tile.tiling import price_of
from compiler_layer.pipeline import Options, passes, run_passes
from compiler_layer.rewriting.state import ASSIGN_PREFIX, READ_PREFIX
from compiler_layer.schedule.layout import HardwareOp, layout
from compiler_layer.schedule.place_ddr import place_ddr
from driver_layer.abi.cost import Space as Memory
from driver_layer.abi.cost import dma_ns
from driver_layer.abi.platforms import Platform

__all__ = ["Estimate", "LayerSum", "estimate"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """Time and memory of a static model, layer by layer."""

    parts: tuple[LayerSum, ...]
    """Ops before the layers; each layer; ops behind the layers."""
    scratch_bytes: int
    """Intermediate tensors in DDR."""
    port_bytes: Mapping[str, int]
    """Inputs and outputs, including states, by name."""

    def whole(self, counts: Sequence[int]) -> LayerSum:
        """Sum of a model whose layers are repeated ``counts`` times."""
        before, *layers, behind = self.parts
        repeated = (part.times(count) for part, count in zip(layers, counts, strict=True))
        return sum(repeated, before + behind)


def estimate(model: Model, options: Options, layers: int, layer_of: LayerOf) -> Estimate:
    """Estimate the time and memory of a static model.

    Args:
        model: consumed, as by ``compile_model``; not folded.
        options: as for ``compile_model``; weights are never counted.
        layers: number of layers of the model.
        layer_of: layer of a weight.

    Raises:
        CompilerError: as ``compile_model``.
    """
    tile = Tile(options.platform, options.tiles)
    machine = Machine(tile.device(), tile.used_tiles())
    run_passes(model, passes(replace(options, fold=False, weightless=False)), options)
    laid_out = layout(model)
    owners = Owners(layer_of, layers)
    parts = [LayerSum() for _ in range(layers + 2)]
    clock = Clock()
    ended = 0.0
    numbers: list[int] = []
    for op in laid_out.ops:
        owner, price = owners.of(op), _price(op, machine)
        numbers.append(owner)
        end = max(ended, clock.end_of(op, price))
        parts[owner] += LayerSum(ns=end - ended, price=price, ops=1)
        ended = end
    for buffer, owner in owners.constants.items():
        held = buffer.constant is not None and isinstance(buffer.constant.value, FileAttr)
        parts[owner] += LayerSum(ports=1) if held else LayerSum(constant_bytes=buffer.nbytes)
    for buffer, owner in owners.ports.items():
        own = not buffer.name.startswith((READ_PREFIX, ASSIGN_PREFIX))
        parts[owner] += LayerSum(ports=1, own_ports=int(own))
    scratch_bytes = place_ddr(spans_of(laid_out, numbers, layers))
    port_bytes = {buffer.name: buffer.nbytes for buffer in owners.ports}
    return Estimate(tuple(parts), scratch_bytes, port_bytes)


def _price(op: HardwareOp, machine: Machine) -> Price:
    priced = None if op.op is None else price_of(op.op, machine)
    return priced or _price_copies(op, machine.platform)


def _price_copies(op: HardwareOp, platform: Platform) -> Price:
    """Price an op that is not tiled: copies within DDR, or a gather, which passes through CMX."""
    (target,) = op.results
    if isinstance(op.op, npu.Gather):
        ns = 2 * dma_ns(platform, target.nbytes, Memory.DDR, Memory.CMX)
        return Price(ns, ns, 0.0, 0.0, 3.0, 0.0, 0.0)
    run, ddr = runs(target)[0] if op.op is None else None, Memory.DDR
    ns = sum(dma_ns(platform, one.nbytes, ddr, ddr, runs(one)[0], run) for one in op.operands)
    return Price(ns, ns, 0.0, 0.0, float(len(op.operands)), 0.0, 0.0)
