"""Reference engines: the executable specification of tasks, in numpy.

Each kind of task has a module.
"""

from __future__ import annotations

from typing import NoReturn

from driver_layer.engines.reference.dma import prepare_dma
from driver_layer.engines.reference.dpu import prepare_dpu
from driver_layer.engines.reference.shave import prepare_shave
from driver_layer.errors import DeviceFault
from driver_layer.npu.bus import Bus
from driver_layer.npu.order import Order
from driver_layer.npu.program import Program


class ReferenceEngines:
    """DMA, DPU and SHAVE in numpy; satisfies ``engines.contract.Engines``."""

    dma = staticmethod(prepare_dma)
    dpu = staticmethod(prepare_dpu)
    shave = staticmethod(prepare_shave)


def explain_fault(program: Program, order: Order, bus: Bus, step: int) -> NoReturn:
    """Run the failed task of a step again, to raise its fault.

    Raises:
        DeviceFault: always.
    """
    queue, index = program.queues[order.queues[step]], order.tasks[step]
    try:
        queue.work.prepare(index, ReferenceEngines(), bus)()
    except DeviceFault as fault:
        raise fault.at(queue.name, index) from None
    raise DeviceFault("the task failed", queue.name, index)
