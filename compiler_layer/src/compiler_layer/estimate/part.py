"""What some ops of a blob take together: time, tasks, bytes."""

from __future__ import annotations

from dataclasses import dataclass

from compiler_layer.passes.tile.machine import Price
from driver_layer.abi import metadata, tasks
from driver_layer.abi.elf import RELA, SHDR, SYM

NOTHING = Price(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

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

_FIXED_BYTES = 12_000
"""What every blob has: sections with their headers."""


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
    own_ports: int = 0
    """Those that are neither: a blob describes them once more, as OpenVINO does."""

    def times(self, count: int) -> Part:
        """So many of them."""
        return Part(
            count * self.ns,
            self.price.times(count),
            count * self.ops,
            count * self.constant_bytes,
            count * self.ports,
            count * self.own_ports,
        )

    def __add__(self, other: Part) -> Part:
        """Both, one after the other."""
        price = Price(*(a + b for a, b in zip(self.price, other.price, strict=True)))
        return Part(
            self.ns + other.ns,
            price,
            self.ops + other.ops,
            self.constant_bytes + other.constant_bytes,
            self.ports + other.ports,
            self.own_ports + other.own_ports,
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
            + self.own_ports * metadata.OV_NODE.itemsize
            + self.constant_bytes
            + _FIXED_BYTES
        )
