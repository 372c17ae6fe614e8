"""Gate through which threads enter and leave a table, in LLVM IR.

The leader of a run opens the gate, wakes helpers, works, and closes the gate when all units are
done; then it waits for helpers that are still inside. A helper increments the count of those
inside, and checks whether the gate is open. A late helper leaves again; nobody waits for it.

Helpers sleep between runs. Spinning instead would save the time to wake them; but sometimes the
scheduler then places the leader on a helper's core, and leaves both there during a complete run.
"""

from __future__ import annotations

from enum import IntEnum

from llvmlite import ir

from driver_layer.engines.native.dispatch.table import COUNTER_BYTES, StateWord
from driver_layer.engines.native.dispatch.worker import yield_after
from driver_layer.engines.native.jit.emitter import I32, I64, PTR, Emitter, Value
from driver_layer.engines.native.jit.host import Host
from driver_layer.engines.native.jit.kernels import KernelSpec


class GateWord(IntEnum):
    """Words that all threads of a team share, in a cache line each."""

    OPEN = 0
    """Nonzero if helpers may enter."""
    INSIDE = 1
    """Number of helpers that have entered."""
    STATES = 2
    """Address of the table's states, and their number in the next word."""
    WORDS = 3


class ThreadWord(IntEnum):
    """Arguments of a thread."""

    GATE = 0
    """Address of the shared words."""
    WORK = 1
    """Address of the kernel that works on a table."""
    NUMBER = 2
    """Number of the thread; the leader's is 0."""
    SCRATCH = 3
    """Address of the thread's scratch memory, which may change while the gate is closed."""
    WORDS = 4


_WORK = ir.FunctionType(I32, [PTR, PTR])


class _Thread:
    """Code that both kernels share."""

    def __init__(self, host: Host) -> None:
        self.e = Emitter(host)
        self.b = self.e.b
        self.gate = self.e.pointer(ThreadWord.GATE)

    def place(self, word: GateWord) -> Value:
        """Return the address of a shared word."""
        return self.e.at(self.gate, COUNTER_BYTES * word)

    def work(self) -> None:
        """Work on the posted table."""
        e, b = self.e, self.b
        states, count = (e.load(e.at(self.place(GateWord.STATES), at), I64) for at in (0, 8))
        number = b.urem(e.word(ThreadWord.NUMBER), count)
        state = b.add(states, b.mul(number, I64(8 * StateWord.WORDS)))
        code = e.load_function(e.at(e.args, 8 * ThreadWord.WORK), _WORK)
        b.call(code, [b.inttoptr(state, PTR), e.pointer(ThreadWord.SCRATCH)])


def _write_lead(host: Host) -> str:
    one = _Thread(host)
    e, b = one.e, one.b
    one.work()
    # Sequentially consistent: a helper sees the closed gate, or the leader sees the helper inside.
    b.atomic_rmw("xchg", one.place(GateWord.OPEN), I64(0), "seq_cst")
    spins = e.variable(I64(0))
    inside = one.place(GateWord.INSIDE)
    with e.repeat(lambda: b.icmp_signed(">", b.load_atomic(inside, "seq_cst", 8, typ=I64), I64(0))):
        yield_after(e, spins)
    return e.finish()


def _write_help(host: Host) -> str:
    one = _Thread(host)
    e, b = one.e, one.b
    b.atomic_rmw("add", one.place(GateWord.INSIDE), I64(1), "seq_cst")
    opened = b.load_atomic(one.place(GateWord.OPEN), "seq_cst", 8, typ=I64)
    with b.if_then(b.icmp_signed("!=", opened, I64(0))):
        one.work()
    b.atomic_rmw("sub", one.place(GateWord.INSIDE), I64(1), "seq_cst")
    return e.finish()


LEAD = KernelSpec("dispatch lead", _write_lead)
"""Works on a table together with the helpers inside, closes the gate, and waits for them."""

HELP = KernelSpec("dispatch help", _write_help)
"""Works on the posted table if its gate is open."""
