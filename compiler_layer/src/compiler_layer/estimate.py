"""What a model will take, from how its ops are to be cut: nothing is scheduled, no blob is written.

How it works. The passes run as they do for a blob, the ``tile`` pass among them, which chooses how
each op is cut by a closed-form price. That price is what is added up here, op after op: it knows
how loads and work overlap within an op, not that an op's first load may overlap the op before.
Tasks are counted the same way, and their records make the blob's size. Intermediate tensors are
placed in DDR as the scheduler places them.

How far to trust it: ``tests/npuw/test_plan.py`` compares it with compiled blobs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.constant_value import FileAttr
from compiler_layer.model import Model
from compiler_layer.passes.tile import Tile
from compiler_layer.passes.tile.machine import Machine, Price
from compiler_layer.passes.tile.tiling import price_of
from compiler_layer.pipeline import Options, passes, run_passes
from compiler_layer.schedule.layout import HardwareOp, Layout, layout
from compiler_layer.schedule.place_ddr import place_ddr
from compiler_layer.schedule.views import Buffer, Space
from driver_layer.abi import metadata, tasks
from driver_layer.abi.cost import Space as Memory
from driver_layer.abi.cost import dma_ns
from driver_layer.abi.elf import RELA, SHDR, SYM
from driver_layer.abi.platforms import Platform

NOTHING = Price(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

_FOLDED_LAYERS = 3
"""So many equal layers are compiled as one."""

LayerOf = Callable[[str], int | None]
"""Which layer a weight belongs to, by its name; the number of layers for what is behind them."""

_RELOCATIONS = {"transfers": 2.0, "products": 4.3, "invocations": 5.2}
"""Of a task of each kind: its operands, its successor, its program. The means of compiled models
(A: it depends on how many operands lie in DDR)."""

_PARAMS_BYTES = 118
"""Arguments of a call of a SHAVE program: the mean of compiled models (A)."""

_BARRIERS_PER_TASK = 0.6
"""The mean of compiled models (A)."""

_LAYER_MAP_BYTES = 4
"""Of each task, the number of its operation."""

_OP_BYTES = 56
"""Of each operation, its name and its peak of CMX."""

_PORT_BYTES = 2 * metadata.TENSOR_REF.itemsize + SYM.itemsize + SHDR.itemsize + 48
"""Of each input and output: it is described twice, and is a section and a symbol with a name."""

_FIXED_BYTES = 4 * metadata.OV_NODE.itemsize + 12_000
"""What every blob has: the model's own ports once more, and sections with their headers."""


@dataclass(frozen=True, slots=True)
class Part:
    """What the ops of one layer take, or those before or behind all layers."""

    ns: float = 0.0
    """How much later it ends than what is before it."""
    price: Price = NOTHING
    """The sum of its ops."""
    ops: int = 0
    constant_bytes: int = 0
    """Constants that a blob holds though it is without weights."""
    ports: int = 0
    """Inputs and outputs; weights and caches are some."""

    def times(self, count: int) -> Part:
        """So many of them."""
        rest = (count * self.ops, count * self.constant_bytes, count * self.ports)
        return Part(count * self.ns, self.price.times(count), *rest)

    def __add__(self, other: Part) -> Part:
        """Both, one after the other."""
        price = Price(*(a + b for a, b in zip(self.price, other.price, strict=True)))
        return Part(
            self.ns + other.ns,
            price,
            self.ops + other.ops,
            self.constant_bytes + other.constant_bytes,
            self.ports + other.ports,
        )

    @property
    def fw_bytes(self) -> int:
        """Task lists that the management core reads: all but those of transfers."""
        price = self.price
        return int(
            price.products * (tasks.DPU_INVARIANT.itemsize + tasks.DPU_VARIANT.itemsize)
            + price.invocations * tasks.KERNEL_INVOCATION.itemsize
            + price.tasks * _BARRIERS_PER_TASK * tasks.BARRIER_CONFIG.itemsize
        )

    @property
    def blob_bytes(self) -> int:
        """The size of a blob without weights."""
        price = self.price
        relocations = sum(getattr(price, kind) * each for kind, each in _RELOCATIONS.items())
        return self.fw_bytes + int(
            price.transfers * tasks.DMA_TASK.itemsize
            + price.invocations * _PARAMS_BYTES
            + price.tasks * _LAYER_MAP_BYTES
            + relocations * RELA.itemsize
            + self.ops * _OP_BYTES
            + self.ports * _PORT_BYTES
            + self.constant_bytes
            + _FIXED_BYTES
        )


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a static model takes, layer by layer."""

    parts: tuple[Part, ...]
    """Before the layers; each of them; behind them."""
    scratch_bytes: int
    """Intermediate tensors in DDR."""

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
    owners = _Owners(layer_of, layers)
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
    for owner in owners.ports.values():
        parts[owner] += Part(ports=1)
    return Estimate(tuple(parts), place_ddr(_spans(laid_out, numbers)))


class Clock:
    """When ops end, if they begin as early as they may.

    An op waits for those that it reads from. Transfers are made in the order of the program, so its
    loads follow those of the op before; its weights come ahead, while nothing else is moved. An
    engine does one thing at a time.
    """

    def __init__(self) -> None:
        self._made: dict[Buffer, float] = {}
        self._issued = 0.0
        """When the last op had loaded what it reads."""
        self._dma = 0.0
        self._dpu = 0.0
        self._shave = 0.0
        """Until when they are busy."""

    def end_of(self, op: HardwareOp, price: Price) -> float:
        """Give an op's end, in ns, and let time go on."""
        read = max((self._made.get(view.buffer, 0.0) for view in op.operands), default=0.0)
        begin = max(read, self._issued)
        ahead = min(price.ahead_ns, max(0.0, begin - self._dma))
        end = max(
            begin - ahead + price.work_ns,
            self._dma + price.dma_ns,
            self._dpu + price.dpu_ns,
            self._shave + price.shave_ns,
        )
        self._issued = max(self._issued, end - price.tail_ns)
        self._dma = min(end, max(self._dma, begin - ahead) + price.dma_ns)
        self._dpu = end if price.dpu_ns else self._dpu
        self._shave = end if price.shave_ns else self._shave
        self._made.update((view.buffer, end) for view in op.results)
        return end


class _Owners:
    """Finds whose work each op is: that of the last layer whose weights have a part in it."""

    def __init__(self, layer_of: LayerOf, layers: int) -> None:
        self._layer_of = layer_of
        self._last = layers + 1
        self._made: dict[Buffer, int] = {}
        self.constants: dict[Buffer, int] = {}
        """For each constant the first that reads it."""
        self.ports: dict[Buffer, int] = {}
        """The same for inputs and outputs."""

    def of(self, op: HardwareOp) -> int:
        """Give 0 for what is before the layers, 1 for the first of them, and so on."""
        read = [view.buffer for view in op.operands]
        owner = max((self._known(buffer) for buffer in read), default=0)
        owner = max(owner, self._named(f"{op.name}."))
        written = [view.buffer for view in op.results]
        self._made.update(dict.fromkeys(written, owner))
        for buffer in (*read, *written):
            if buffer.space is Space.CONSTANT:
                self.constants.setdefault(buffer, owner)
            elif buffer.space is not Space.SCRATCH:
                self.ports.setdefault(buffer, owner)
        return owner

    def _known(self, buffer: Buffer) -> int:
        constant = buffer.space is Space.CONSTANT
        return self._named(buffer.name) if constant else self._made.get(buffer, 0)

    def _named(self, name: str) -> int:
        layer = self._layer_of(name)
        return 0 if layer is None else min(layer + 1, self._last)


def _price(op: HardwareOp, machine: Machine) -> Price:
    priced = None if op.op is None else price_of(op.op, machine)
    return priced or _copied(op, machine.platform)


def _copied(op: HardwareOp, platform: Platform) -> Price:
    """A copy within DDR; a gather goes by way of CMX."""
    gathers = isinstance(op.op, npu.Gather)
    views = op.results if gathers else op.operands
    sizes = [math.prod(view.shape) * view.itemsize for view in views]
    through = Memory.CMX if gathers else Memory.DDR
    ns = sum(dma_ns(platform, size, Memory.DDR, through) for size in sizes)
    count = float(len(sizes))
    return Price(ns * (2 if gathers else 1), ns, 0.0, 0.0, count * (3 if gathers else 1), 0.0, 0.0)


def _spans(laid_out: Layout, owners: Sequence[int]) -> dict[Buffer, tuple[int, int]]:
    """For each scratch buffer the first and the last op that touches it.

    Layers that are compiled once and run many times hand on what they compute in two buffers that
    take turns; these, and what all layers read, stay alive through all of them.
    """
    spans: dict[Buffer, tuple[int, int]] = {}
    for at, op in enumerate(laid_out.ops):
        for buffer in _scratch(op):
            first, _ = spans.get(buffer, (at, at))
            spans[buffer] = (first, at)
    last_layer = max(owners) - 1
    layers = [at for at, owner in enumerate(owners) if 1 <= owner <= last_layer]
    if last_layer < 2:  # noqa: PLR2004  # a single layer hands on to nobody
        return spans
    begin, end = layers[0], layers[-1]
    for buffer, (first, last) in list(spans.items()):
        made, read = owners[first], owners[last]
        if made == 0 < read:
            spans[buffer] = (first, max(last, end))
        elif 1 <= made < read <= last_layer:
            spans[buffer] = (begin, end)
            spans[Buffer(buffer.name, Space.SCRATCH, buffer.nbytes)] = (begin, end)
    return spans


def _scratch(op: HardwareOp) -> Iterable[Buffer]:
    buffers = (view.buffer for view in (*op.operands, *op.results))
    return (buffer for buffer in buffers if buffer.space is Space.SCRATCH)
