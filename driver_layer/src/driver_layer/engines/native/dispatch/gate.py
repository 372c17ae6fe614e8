"""The gate through which threads enter and leave a table, in LLVM IR.

The leader of a run opens the gate, wakes helpers, works, and closes the gate when all is done; then
it waits for helpers that are still inside. Helpers count themselves in, and look whether the gate
is open: one that comes too late goes away again, and nobody has waited for it.

Helpers sleep between runs. To let them look for the next one instead saves the time that it takes
to wake them; but then the scheduler now and then puts the leader on a helper's core, and leaves
them there for the whole of a run.
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
    """What all threads of a team share: a cache line each."""

    OPEN = 0
    """Whether helpers may come in."""
    INSIDE = 1
    """Helpers that have counted themselves in."""
    STATES = 2
    """Address of the table's states, and how many there are behind it."""
    WORDS = 3


class ThreadWord(IntEnum):
    """What a thread is given."""

    GATE = 0
    """Address of the shared words."""
    WORK = 1
    """Address of the code that works on a table."""
    NUMBER = 2
    """Of the thread; the leader's is 0."""
    SCRATCH = 3
    """Address of its scratch memory, which may change while the gate is closed."""
    WORDS = 4


_WORK = ir.FunctionType(I32, [PTR, PTR])


class _Thread:
    """What both kernels do."""

    def __init__(self, host: Host) -> None:
        self.e = Emitter(host)
        self.b = self.e.b
        self.gate = self.e.pointer(ThreadWord.GATE)

    def place(self, word: GateWord) -> Value:
        """The address of a shared word."""
        return self.e.at(self.gate, COUNTER_BYTES * word)

    def work(self) -> None:
        """Work on the table that is posted."""
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
    # Either a helper sees that the gate is closed, or it is seen inside.
    b.atomic_rmw("xchg", one.place(GateWord.OPEN), I64(0), "seq_cst")
    spins = e.variable(I64(0))
    look, wait, after = (e.function.append_basic_block(n) for n in ("look", "wait", "alone"))
    b.branch(look)
    b.position_at_end(look)
    inside = b.load_atomic(one.place(GateWord.INSIDE), "seq_cst", 8, typ=I64)
    b.cbranch(b.icmp_signed(">", inside, I64(0)), wait, after)
    b.position_at_end(wait)
    yield_after(e, spins)
    b.branch(look)
    b.position_at_end(after)
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
"""Works on a table with the helpers that enter its gate, and closes it behind the last."""

HELP = KernelSpec("dispatch help", _write_help)
"""Works on the table whose gate is open, if one is."""
