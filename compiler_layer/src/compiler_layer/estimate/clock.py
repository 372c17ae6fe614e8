"""When ops begin and end, in closed form."""

from __future__ import annotations

from compiler_layer.passes.tile.machine import Price
from compiler_layer.schedule.layout import HardwareOp
from compiler_layer.schedule.views import Buffer

_LOST_OVERLAP = 0.15
"""Of what loads and work could do at the same time, the part that they do one after the other:
steps are uneven, and a queue waits where a barrier stands. Fitted to compiled models (A)."""


class Clock:
    """When ops end, if they begin as early as they may.

    An op waits for those that it reads from. Transfers are made in the order of the program, so its
    loads follow those of the op before; its weights come ahead, while nothing else is moved. An
    engine does one thing at a time.
    """

    def __init__(self) -> None:
        self._made: dict[Buffer, float] = {}
        self._issued: float = 0.0
        """When the last op had loaded what it reads."""
        self._dma: float = 0.0
        """Until when transfers are made."""
        self._dpu: float = 0.0
        self._shave: float = 0.0

    def end_of(self, op: HardwareOp, price: Price) -> float:
        """Give an op's end, in ns, and let time go on."""
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
