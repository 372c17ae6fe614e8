"""How threads come to a table and leave it, in LLVM IR.

Who leads a run posts the table and opens a gate, works, and closes the gate when all is done; then
it waits for who is still inside. Helpers that see what is posted count themselves in, and look
whether the gate is open: one that comes too late goes away again, and nobody has waited for it.
Between runs helpers look for another for a while before they go to sleep, which is Python's matter:
to wake takes longer than what lies between two tokens.
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

    POSTED = 0
    """The number of the run that was posted last."""
    OPEN = 1
    """The number of the run whose gate is open; 0: none is."""
    INSIDE = 2
    """Helpers that have counted themselves in."""
    STATES = 3
    """Address of the table's states, and how many there are behind it."""
    PATIENCE = 4
    """How often a helper looks for another run before it goes to sleep."""
    WORDS = 5


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
    RUN = 4
    """The leader's: the run's number, not 0. A helper's: that of the last run it saw."""
    WORDS = 5


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
    run = e.word(ThreadWord.RUN)
    b.atomic_rmw("xchg", one.place(GateWord.OPEN), run, "seq_cst")
    b.atomic_rmw("xchg", one.place(GateWord.POSTED), run, "seq_cst")
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
    seen = e.at(e.args, 8 * ThreadWord.RUN)
    looks, spins = e.variable(I64(0)), e.variable(I64(0))
    look, found, wait, after = (
        e.function.append_basic_block(name) for name in ("look", "found", "wait", "tired")
    )
    b.branch(look)
    b.position_at_end(look)
    posted = b.load_atomic(one.place(GateWord.POSTED), "acquire", 8, typ=I64)
    b.cbranch(b.icmp_signed("==", posted, e.load(seen, I64)), wait, found)
    b.position_at_end(found)
    e.store(posted, seen)
    b.atomic_rmw("add", one.place(GateWord.INSIDE), I64(1), "seq_cst")
    opened = b.load_atomic(one.place(GateWord.OPEN), "seq_cst", 8, typ=I64)
    with b.if_then(b.icmp_signed("==", opened, posted)):
        one.work()
    b.atomic_rmw("sub", one.place(GateWord.INSIDE), I64(1), "seq_cst")
    looks.set(I64(0))
    b.branch(look)
    b.position_at_end(wait)
    looks.set(b.add(looks.get(), I64(1)))
    yield_after(e, spins)
    patience = e.load(one.place(GateWord.PATIENCE), I64)
    b.cbranch(b.icmp_signed("<=", looks.get(), patience), look, after)
    b.position_at_end(after)
    return e.finish()


LEAD = KernelSpec("dispatch lead", _write_lead)
"""Posts a table and works on it, with whoever comes; all helpers have left when it is back."""

HELP = KernelSpec("dispatch help", _write_help)
"""Works on what is posted, until nothing is for long."""
