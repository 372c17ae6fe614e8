"""Sums over several ops of a blob: time, tasks, bytes."""

from __future__ import annotations

from dataclasses import dataclass

from compiler_layer.passes.tile.machine import Price
from driver_layer.abi import metadata, tasks
from driver_layer.abi.elf import RELA, SHDR, SYM

NOTHING = Price(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

_RELOCATIONS = {"transfers": 2.0, "products": 4.3, "invocations": 5.2}
"""Relocations of a task of each kind: its operands, successor and program. Means of compiled models
(A: they depend on the number of operands in DDR)."""

_PARAMS_BYTES = 118
"""Size of the arguments of a SHAVE invocation: mean of compiled models (A)."""

_BARRIERS_PER_TASK = 0.6
"""Mean of compiled models (A)."""

_LAYER_MAP_BYTES = 4
"""Size of a task's op number in the layer map."""

_OP_BYTES = 56
"""Size of an op's name and CMX peak in the layer map."""

_PORT_BYTES = 2 * metadata.TENSOR_REF.itemsize + SYM.itemsize + SHDR.itemsize + 48
"""Size of an input or output: two descriptions, a section, and a symbol with a name."""

_FIXED_BYTES = 12_000
"""Size of the sections, with headers, that every blob has."""


@dataclass(frozen=True, slots=True)
class LayerSum:
    """Sums over the ops of one layer, or over the ops before or behind all layers."""

    ns: float = 0.0
    """Time between the end of the part before and the end of this part."""
    price: Price = NOTHING
    """Sum of the ops' prices."""
    ops: int = 0
    constant_bytes: int = 0
    """Constants that a blob without weights still contains."""
    ports: int = 0
    """Inputs and outputs, including weights and caches."""
    own_ports: int = 0
    """Inputs and outputs without weights and caches; a blob describes them again for OpenVINO."""

    def times(self, count: int) -> LayerSum:
        """Return the sum of ``count`` equal parts."""
        return LayerSum(
            count * self.ns,
            self.price.times(count),
            count * self.ops,
            count * self.constant_bytes,
            count * self.ports,
            count * self.own_ports,
        )

    def __add__(self, other: LayerSum) -> LayerSum:
        """Return the sum of two parts, one after the other."""
        price = Price(*(a + b for a, b in zip(self.price, other.price, strict=True)))
        return LayerSum(
            self.ns + other.ns,
            price,
            self.ops + other.ops,
            self.constant_bytes + other.constant_bytes,
            self.ports + other.ports,
            self.own_ports + other.own_ports,
        )

    @property
    def fw_bytes(self) -> int:
        """Size of the task lists that the management core reads: all lists except transfers."""
        price = self.price
        return int(
            price.products * (tasks.DPU_INVARIANT.itemsize + tasks.DPU_VARIANT.itemsize)
            + price.invocations * tasks.KERNEL_INVOCATION.itemsize
            + price.tasks * _BARRIERS_PER_TASK * tasks.BARRIER_CONFIG.itemsize
        )

    @property
    def blob_bytes(self) -> int:
        """Size of a blob without weights."""
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
