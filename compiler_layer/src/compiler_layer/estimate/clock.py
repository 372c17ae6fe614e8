"""Begin and end times of ops, in closed form."""

from __future__ import annotations

from compiler_layer.passes.tile.machine import Price
from compiler_layer.schedule.layout import HardwareOp
from compiler_layer.schedule.views import Buffer

_LOST_OVERLAP = 0.15
"""Share of the possible overlap of loads and work that runs in sequence instead: steps are uneven,
and queues wait at barriers. Fitted to compiled models (A)."""


class Clock:
    """End times of ops that begin as early as possible.

    An op waits for the ops whose results it reads. Transfers keep the order of the program, so an
    op's loads follow those of the op before. Its weights are loaded ahead while DMA is idle. An
    engine runs one op at a time.
    """

    def __init__(self) -> None:
        self._made: dict[Buffer, float] = {}
        self._issued: float = 0.0
        """Time at which the last op had finished its loads."""
        self._dma: float = 0.0
        """Time until which DMA is busy."""
        self._dpu: float = 0.0
        self._shave: float = 0.0

    def end_of(self, op: HardwareOp, price: Price) -> float:
        """Return an op's end in ns, and advance the clock."""
        read = max((self._made.get(view.buffer, 0.0) for view in op.operands), default=0.0)
        begin = max(read, self._issued)
        ahead = min(price.ahead_ns, max(0.0, begin - self._dma))
        lost = _LOST_OVERLAP * min(price.dma_ns, price.dpu_ns + price.shave_ns)
        end = max(
            begin - ahead + price.work_ns + lost,
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
