"""Signal handlers that raise at any bytecode of a change leave npuw's objects valid.

The object is as before the change, or as after it, or reports that it is neither.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from tests.driver.interrupted import interruptions

from npuw_layer.api.async_run import AsyncRun
from npuw_layer.api.in_order import InOrder
from npuw_layer.backends import level_zero_programs
from npuw_layer.backends.host_tensors import HostTensors, view
from npuw_layer.backends.interpreter import HostMemory, InterpreterDevice
from npuw_layer.backends.level_zero_memory import DeviceMemory
from npuw_layer.backends.level_zero_programs import RecordedProgram
from npuw_layer.backends.protocols import ASSIGN_PREFIX, READ_PREFIX, TensorInfo
from npuw_layer.execution.devices.placed import PlacedModel
from npuw_layer.execution.offload.plan import plan_offload
from npuw_layer.execution.offload.ring import LayerWeights, WeightsRing
from npuw_layer.execution.offload.sources import HostBytes, SlotLayout
from npuw_layer.execution.token_tiles.program import RowTilesProgram
from npuw_layer.kinds.static.bound_tensor import BoundTensor
from npuw_layer.kinds.static.variable_state import VariableState
from npuw_layer.llm.kv import copies
from npuw_layer.llm.kv.block_cache.attachment import BlockAttachment, Blocks
from npuw_layer.llm.kv.block_cache.layout import BlockLayout, BlockPool
from npuw_layer.llm.kv.kv_rows import KVRows
from npuw_layer.llm.plan.stages import Stage, StageKind
from npuw_layer.llm.request.history import History
from npuw_layer.llm.request.lm_head import LMHead, LogitsTarget
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.tensors.names import IDS, LOGITS, POSITIONS
from npuw_layer.traits.linear_states.states import LinearStates
from npuw_layer.traits.lora.buffers import AdapterBuffers
from npuw_layer.traits.lora.values import AdapterValues

ROWS, WINDOW, SINKS = 9, 8, 2


def rows(tokens: int) -> KVRows:
    """Return a sliding cache with a number of tokens."""
    made = KVRows(ROWS, WINDOW, SINKS)
    for _ in range(tokens):
        made.place(1)
    return made


@pytest.mark.parametrize("tokens", [3, WINDOW - 1, WINDOW, WINDOW + 3])
@pytest.mark.parametrize(
    "change",
    [
        lambda made: made.place(1),
        lambda made: made.place(3),
        lambda made: made.truncate(2),
        lambda made: made.truncate(made.tokens - 1),
        lambda made: made.restore(np.arange(3, 7)),
    ],
    ids=["one", "three", "to sinks", "back by one", "restore"],
)
def test_rows_hold_the_tokens_of_before_or_after(tokens: int, change: Callable[..., Any]) -> None:
    def seen(made: KVRows) -> tuple[Any, ...]:
        return made.tokens, made.plain, made.numbers().tolist(), made.order().tolist()

    def act() -> None:
        change(made)

    made, after = rows(tokens), rows(tokens)
    before = seen(made)
    change(after)
    for _ in interruptions(act):
        assert seen(made) in (before, seen(after))
        made = rows(tokens)
    assert seen(made) == seen(after)


def said(count: int, first: int = 0) -> NewTokens:
    rows = {name: np.arange(first, first + count) for name in (IDS, POSITIONS)}
    return NewTokens(rows, np.ones(first + count, np.int64))


def history(count: int, noted: bool) -> History:
    made = History([SimpleNamespace(name=IDS)] if noted else [], rereads=False)
    made.extend(said(count))
    return made


@pytest.mark.parametrize("noted", [True, False])
@pytest.mark.parametrize(
    "change",
    [
        lambda made: made.extend(said(3, 6)),
        lambda made: made.rewind(2),
        lambda made: made.keep(4, np.array([1])),
    ],
    ids=["extend", "rewind", "keep"],
)
def test_a_history_has_as_many_tokens_as_it_counts(noted: bool, change: Callable[..., Any]) -> None:
    def seen(made: History) -> tuple[Any, ...]:
        return made.caller_count, made.count, made.ids

    def act() -> None:
        change(made)

    made, after = history(6, noted), history(6, noted)
    before = seen(made)
    change(after)
    for _ in interruptions(act):
        assert seen(made) in (before, seen(after))
        made = history(6, noted)
    assert seen(made) == seen(after)


def test_an_unknown_history_is_forgotten_before_it_is_counted_again() -> None:
    def act() -> None:
        made.hold(4)

    made = history(6, True)
    for _ in interruptions(act):
        assert (made.count, made.unknown) in ((6, 0), (0, 0), (4, 4))
        made = history(6, True)
    assert made.is_unknown


class TestLinearStates:
    INFO = (TensorInfo("s", "f32", (4,)),)

    def states(self) -> LinearStates:
        """Return states of three tokens, then of five."""
        made = LinearStates(InterpreterDevice(), self.INFO)
        for value, tokens in ((1.0, 3), (2.0, 2)):
            made._tensor(ASSIGN_PREFIX, "s")[:] = value
            made.advance(tokens)
        return made

    def test_an_interrupted_run_is_undone(self) -> None:
        made = self.states()
        made._tensor(ASSIGN_PREFIX, "s")[:] = 3
        for _ in interruptions(lambda: made.advance(1)):
            made.rewind(5)
            assert (made.tokens, made.read("s").tolist()) == (5, [2] * 4)

    @pytest.mark.parametrize(("back", "value"), [(3, 1.0), (0, 0.0)])
    def test_an_interrupted_rewind_can_be_repeated(self, back, value) -> None:
        def act() -> None:
            made.rewind(back)

        made = self.states()
        for _ in interruptions(act):
            made.rewind(back)
            assert (made.tokens, made.read("s").tolist()) == (back, [value] * 4)
            made = self.states()


def test_half_copied_adapters_belong_to_no_conversation() -> None:
    name = "lora_state_0.MatMul.A"
    info = TensorInfo(name, "f32", (2, 4))
    one, other = AdapterValues({name: (2, 4)}), AdapterValues({name: (2, 4)})
    one.set(name, np.full((2, 4), 1, np.float32))
    other.set(name, np.full((2, 4), 2, np.float32))
    buffers = AdapterBuffers(InterpreterDevice(), [info], one)
    buffers.begin()
    buffers.use(other)
    for _ in interruptions(buffers.begin):
        buffers.use(one)
        buffers.begin()
        assert (buffers._arena[name] == 1).all()
        buffers.use(other)
    assert (buffers._arena[name] == 2).all()


class Bindings:
    """A program that records its bindings."""

    def __init__(self) -> None:
        self.bound: dict[str, tuple[Any, int]] = {}

    def bind(self, name: str, memory: Any, offset: int) -> None:
        self.bound[name] = memory, offset

    def prepare(self) -> None:
        """Do nothing."""

    def run(self) -> None:
        """Record the bindings of the last run."""
        self.ran = dict(self.bound)


def test_a_program_reads_only_allocated_blocks() -> None:
    infos = [TensorInfo(f"{READ_PREFIX}0.key_block_{n}", "f32", (1, 4, 1, 1)) for n in range(3)]
    device, kept = InterpreterDevice(), KVRows(12, 12)
    layout = BlockLayout(infos[:1], 4)
    pool = BlockPool(partial(layout.allocate, device), 3)
    dummy = device.allocate(layout.largest)
    kept.place(1)

    def attach() -> tuple[Bindings, BlockAttachment]:
        program = Bindings()
        blocks = Blocks(pool, layout, kept, dummy, 0)
        return program, BlockAttachment(blocks, program, infos, 12, None)

    def grow() -> None:
        pool.grow(2)
        kept.place(4)
        attachment.refresh()

    pool.grow(1)
    program, attachment = attach()
    attachment.refresh()
    for _ in interruptions(grow):
        kept.truncate(1)
        pool.trim(1)
        attachment.refresh()
        there = [program.bound[info.name][0] for info in infos]
        assert there == [pool[0].memory, dummy, dummy]


class Late:
    """A copy that is made when it is waited for."""

    def __init__(self, spans: Any) -> None:
        self.spans = spans
        self.begun = False

    def start(self) -> None:
        self.begun = True

    def wait(self) -> None:
        assert self.begun, "a copy that never began is waited for"
        for span in self.spans:
            span.target.data[:4] = span.source.data[:4]


@pytest.mark.matrix
@pytest.mark.parametrize("ahead", [True, False])
def test_a_layer_never_runs_on_incomplete_weights(ahead: bool) -> None:
    machine = SimpleNamespace(
        allocate=lambda nbytes: HostMemory(np.zeros(nbytes, np.uint8)), record_copies=Late
    )
    layout = SlotLayout.of([TensorInfo("w", "u8", (4,))])
    hosts = [HostMemory(np.full(4, layer + 1, np.uint8)) for layer in range(3)]
    weights = LayerWeights(layout, [[HostBytes(host, 0, 4)] for host in hosts])

    def make() -> WeightsRing:
        return WeightsRing(machine, plan_offload(3, 4, 0, 0, 1), 4, ahead)

    def run() -> None:
        ring.begin(weights)
        for layer in range(3):
            ring.acquire(weights, layer)
            assert ring.memory(layer).data.tolist() == [layer + 1] * 4
            ring.release(weights, layer)

    ring = make()
    for _ in interruptions(run):
        run()
        ring = make()


def test_values_are_read_where_the_tensor_is_bound() -> None:
    info = TensorInfo("x", "f32", (2,))
    one, other = (HostMemory(np.full(8, n, np.uint8)) for n in (1, 2))
    tensors = HostTensors([info])
    tensors.bind("x", one, 0)
    for _ in interruptions(lambda: tensors.bind("x", other, 0)):
        assert np.array_equal(tensors["x"], view(info, *tensors.place("x")))
        tensors.bind("x", one, 0)


def test_tiles_are_bound_to_the_rows_they_compute() -> None:
    info = TensorInfo("x", "f32", (1, 8, 2))
    made = object.__new__(RowTilesProgram)
    program = Bindings()
    made._loaded = SimpleNamespace(tiling=SimpleNamespace(ports=["x", "y"]))
    made._program, made._infos, made._places, made._bound = program, {}, {}, None
    made._infos = {"x": info, "y": info}
    one, other = (HostMemory(np.zeros(64, np.uint8)) for _ in range(2))
    for name in ("x", "y"):
        made.bind(name, one, 0)
    made._move(0)

    def elsewhere() -> None:
        made._move(4)
        made.bind("x", other, 0)

    for _ in interruptions(elsewhere):
        made.bind("y", one, 0) if made._bound is None else None
        made._move(0)
        assert program.bound == {"x": made._places["x"], "y": made._places["y"]}
        made.bind("x", one, 0)
        made._move(0)


def test_bindings_of_a_recorded_program_reach_its_recording() -> None:
    made = object.__new__(RecordedProgram)
    one, other = (object.__new__(DeviceMemory) for _ in range(2))
    made._indices, made._bound, made._moved, made._in_files = {"x": [0, 1]}, {}, set(), None
    made.bind("x", one, 0)
    for _ in interruptions(
        lambda: made.bind("x", other, 64), inside=[level_zero_programs.__name__]
    ):
        changed = {index for index, bound in made._bound.items() if bound != (one, 0)}
        assert changed <= made._moved
        assert not changed or made._in_files is None
        made.bind("x", one, 0)
        made._moved.clear()
        made._in_files = []


def bound_tensor() -> tuple[Any, str]:
    made: Any = object.__new__(BoundTensor)
    made.port = SimpleNamespace(any_name="x", is_input=False)
    made._near = lambda: made._given
    return made, "_given"


def variable_state() -> tuple[Any, str]:
    made: Any = object.__new__(VariableState)
    made._variable = SimpleNamespace(arguments=("x", "y"), port=SimpleNamespace(byte_size=0))
    return made, "_tensor"


@pytest.mark.parametrize("make", [bound_tensor, variable_state])
def test_a_static_program_is_bound_to_the_set_tensor(make: Callable[..., tuple[Any, str]]) -> None:
    program = Bindings()
    made, given = make()
    made._program, made._bound, made._transfers = program, None, SimpleNamespace(in_place=0)
    one, other = (SimpleNamespace(memory=object(), offset=n) for n in range(2))
    setattr(made, given, SimpleNamespace(span=lambda: one))
    made.before()

    def elsewhere() -> None:
        setattr(made, given, SimpleNamespace(span=lambda: other))
        made.before()

    for _ in interruptions(elsewhere):
        setattr(made, given, SimpleNamespace(span=lambda: one))
        made.before()
        assert {*program.bound.values()} == {(one.memory, 0)}


def test_logits_are_written_to_the_requested_target() -> None:
    programs: list[Bindings] = []

    class Head(LMHead):
        """A head whose programs only record their bindings."""

        def __init__(self) -> None:
            self._models, self._elsewhere = {1: (cast(Any, {}), cast(Any, None))}, {}
            self._stages = {1: Stage(StageKind.HEAD, 1, 0)}

        def _again(self, rows: int) -> Any:
            programs.append(Bindings())
            return programs[-1]

    made: Any = Head()

    def write(memory: str, offset: int) -> None:
        program, logits = made.program(1, LogitsTarget(cast(Any, memory), offset, 1))
        assert logits is None
        program.run()

    write("one", 0)
    for _ in interruptions(lambda: write("other", 64)):
        write("one", 0)
        program, *_ = made._elsewhere[1]
        assert program.ran == {LOGITS: ("one", 0)}


def test_an_interrupted_compilation_can_be_repeated() -> None:
    made = object.__new__(PlacedModel)
    made.name, made._notes = "model", []
    places = {"CPU": SimpleNamespace(device="CPU")}
    made.elsewhere = SimpleNamespace(place=lambda name, _: places[name])
    made._left = ["CPU"]
    found: list[Any] = []
    for _ in interruptions(lambda: found.append(made._next_place(None))):
        if made._left:
            assert made._next_place(None) is places["CPU"]
        made._left = ["CPU"]
    assert found[-1] is places["CPU"]


def test_an_interrupted_start_leaves_a_request_that_can_be_started() -> None:
    """A ThreadPoolExecutor lost a semaphore's lock, and its thread waited for ever."""
    run, ran = AsyncRun(), list[int]()
    for _ in interruptions(
        lambda: run.start(lambda: ran.append(1), None, lambda: None),
        as_signals=True,
    ):
        assert run.wait(60_000)
        ran.clear()
        run.start(lambda: ran.append(2), None, lambda: None)
        assert run.wait(60_000)
        assert ran == [2]
    assert run.wait(60_000)


def test_an_interrupted_request_keeps_its_place_in_the_order() -> None:
    order = InOrder()
    runs = [AsyncRun(place=order.place()) for _ in range(2)]
    ran: list[int] = []

    def start(number: int) -> None:
        runs[number].start(lambda: ran.append(number), None, lambda: None)

    start(0)
    start(1)
    assert all(run.wait(60_000) for run in runs)
    for _ in interruptions(lambda: start(0), as_signals=True):
        assert runs[0].wait(60_000)
        if order._last[0] == 1:
            start(0)
        start(1)
        assert runs[1].wait(60_000)
    assert len(order._placed) == 2
    assert ran.count(1) > 10


def test_no_copy_continues_when_an_interrupt_is_raised() -> None:
    begun, ended = list[int](), list[int]()

    def copy(number: int) -> None:
        begun.append(number)
        threading.Event().wait(1e-4)
        ended.append(number)

    jobs = [partial(copy, number) for number in range(3)]
    streams = copies._copiers()
    locks = [stream._submitting for stream in streams]
    for _ in interruptions(lambda: copies._do_beside(jobs), *locks, inside=[copies.__name__]):
        assert sorted(begun) == sorted(ended)
    assert sorted(begun) == sorted(ended)
