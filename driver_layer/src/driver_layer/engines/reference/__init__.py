"""Reference engines: the executable specification of tasks, in numpy.

Each kind of task has a module.
"""

from __future__ import annotations

from typing import NoReturn

from driver_layer.engines.reference.dma import prepare_dma
from driver_layer.engines.reference.dpu import prepare_checked, prepare_dpu
from driver_layer.engines.reference.shave import prepare_shave
from driver_layer.errors import DeviceFault, DriverFault, fault_of
from driver_layer.npu.bus import Bus
from driver_layer.npu.order import Order
from driver_layer.npu.program import Program


class ReferenceEngines:
    """DMA, DPU and SHAVE in numpy; satisfies ``engines.contract.Engines``."""

    dma = staticmethod(prepare_dma)
    dpu = staticmethod(prepare_dpu)
    shave = staticmethod(prepare_shave)


class CheckedEngines(ReferenceEngines):
    """Reference engines for workloads that ``dpu.check_workloads`` has checked."""

    dpu = staticmethod(prepare_checked)


def explain_fault(program: Program, order: Order, bus: Bus, step: int) -> NoReturn:
    """Run the failed task of a step again, to raise its fault.

    Raises:
        DeviceFault, OutOfMemory: one of them, always.
    """
    queue, index = program.queues[order.queues[step]], order.tasks[step]
    try:
        queue.work.prepare(index, ReferenceEngines(), bus)()
    except (DriverFault, MemoryError) as error:
        raise fault_of(error, queue.name, index) from None
    raise DeviceFault("the task failed", queue.name, index)
