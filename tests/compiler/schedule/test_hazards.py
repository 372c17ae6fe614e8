"""Dependencies found from spans cover every byte-exact hazard."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from compiler_layer.schedule.barriers import queues_of
from compiler_layer.schedule.dependencies import dependencies
from compiler_layer.schedule.hazards import hazards
from compiler_layer.schedule.tasks import Task, Transfer
from compiler_layer.schedule.views import Buffer, Space, View

WIDTH = 8


def buffer(name: str, offset: int) -> Buffer:
    made = Buffer(name, Space.SCRATCH, 4 * WIDTH)
    made.offset = offset
    return made


def halves(of: Buffer, interleaved: bool) -> list[View]:
    """Return two disjoint parts of a buffer, whose spans interleave if requested."""
    step, second = (8, 4) if interleaved else (4, 16)
    return [View(of, "f32", begin, (WIDTH // 2,), (step,)) for begin in (0, second)]


@st.composite
def copies(draw: st.DrawFn) -> list[Task]:
    """Draw ops that copy one buffer to another in two transfers; buffers share addresses."""
    tasks: list[Task] = []
    places = st.sampled_from([0, 16, 32, 64])
    for op in range(draw(st.integers(1, 8))):
        source = buffer(f"{op}.source", draw(places))
        target = buffer(f"{op}.target", draw(places))
        kinds = draw(st.booleans()), draw(st.booleans())
        pairs = zip(halves(source, kinds[0]), halves(target, kinds[1]), strict=True)
        tasks += [Task(Transfer(a, b, ()), op) for a, b in pairs]
    return tasks


def reached(after: Sequence[set[int]], queues: Sequence[object]) -> list[set[int]]:
    """Return the tasks that are done when each task starts, by waits and by queue order."""
    done: list[set[int]] = []
    last: dict[object, int] = {}
    for index, direct in enumerate(after):
        previous = {last[queues[index]]} if queues[index] in last else set[int]()
        waited = direct | previous
        done.append(waited.union(*(done[other] for other in waited)))
        last[queues[index]] = index
    return done


@settings(max_examples=70, deadline=None)
@given(tasks=copies())
def test_every_hazard_between_ops_is_a_dependency(tasks: list[Task]) -> None:
    queues = queues_of(tasks, 2)
    exact = hazards(tasks, queues)
    for after in (dependencies(tasks), dependencies(tasks, queues)):
        for index, done in enumerate(reached(after, queues)):
            # Transfers of one op are disjoint by contract; here a copy may overlap its own source.
            others = {task for task in exact[index] if tasks[task].op != tasks[index].op}
            assert others <= done, f"task {index} does not wait for {others - done}"


def test_the_second_writer_of_an_op_waits_for_earlier_readers_too() -> None:
    """A regression: Cohere's rotary embedding joined two halves where an angle was still read."""
    angle, joined = buffer("angle", 0), buffer("joined", 0)
    far = [buffer(name, 256 + 64 * i) for i, name in enumerate(("cos", "x", "y"))]
    whole = View.dense(angle, "f32", (WIDTH,))
    read = Task(Transfer(whole, View.dense(far[0], "f32", (WIDTH,)), ()), 0)
    # The second part's span is within the first part's.
    parts = [View(joined, "f32", 0, (4,), (8,)), View(joined, "f32", 4, (3,), (8,))]
    writes = [
        Task(Transfer(View.dense(one, "f32", part.shape), part, ()), 1)
        for one, part in zip(far[1:], parts, strict=True)
    ]
    for queues in (None, [("a", 0), ("b", 0), ("c", 0)]):
        assert dependencies([read, *writes], queues) == [set(), {0}, {0}]
