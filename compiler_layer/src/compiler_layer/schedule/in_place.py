"""Variables updated in place: one buffer is read as the old value and written as the new one.

The program must read the old value before it overwrites it. Usually it does, because the new value
is computed from the last reads. Otherwise the new value is computed elsewhere, and copied over the
old one at the end.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler_layer.model import NO_PORTS, Model, PortSelection
from compiler_layer.rewriting.state import ASSIGN_PREFIX, READ_PREFIX
from compiler_layer.schedule.layout import BufferLayout, layout
from compiler_layer.schedule.order import Ordered, order_steps
from compiler_layer.schedule.tasks import Place, Task, Transfer
from compiler_layer.schedule.unroll import unroll_all
from compiler_layer.schedule.views import Buffer, Space, View
from driver_layer.abi.platforms import Platform


def order_in_place(
    model: Model, platform: Platform, strided: PortSelection = NO_PORTS
) -> tuple[BufferLayout, Ordered]:
    """Lay out a lowered model, split it into tasks and order them, with variables in place.

    Raises:
        DoesNotFit: a step's operands are larger than CMX.
    """
    copied: set[str] = set()
    while True:
        laid_out = layout(model, copied, strided)
        _share_variables(laid_out)
        ordered = order_steps(unroll_all(laid_out, platform), platform.workspace_bytes)
        early = overwritten(ordered.tasks)
        if not early:
            return laid_out, ordered
        assert not early & copied, "outputs copied last are written after all reads"
        copied |= early


def _share_variables(laid_out: BufferLayout) -> None:
    """Share memory between a variable's input and output if they have the same size."""
    inputs = {buffer.name: buffer for buffer in laid_out.inputs}
    for output in laid_out.outputs:
        if not output.name.startswith(ASSIGN_PREFIX):
            continue
        old = inputs.get(READ_PREFIX + output.name.removeprefix(ASSIGN_PREFIX))
        if old is not None and old.nbytes == output.nbytes:
            output.shares, old.shares = old, old


def overwritten(tasks: Sequence[Task]) -> set[str]:
    """Find variables whose old value may be overwritten before it is read.

    Args:
        tasks: in the order in which they are issued.

    Returns:
        The names of the variables' outputs.
    """
    written: dict[Buffer, list[View]] = {}
    found: set[str] = set()
    for task in tasks:
        if not isinstance(task.work, Transfer):
            continue
        old, new = task.work.source, task.work.target
        if isinstance(new, View) and new.buffer.space is Space.OUTPUT and new.buffer.shares:
            written.setdefault(new.buffer.shares, []).append(new)
        if isinstance(old, View) and old.buffer.space is Space.INPUT:
            stays = _place(old) == _place(new)
            found |= {
                view.buffer.name
                for view in written.get(old.buffer, ())
                if _overlap(view, old) and not (stays and view is new)
            }
    return found


def _overlap(a: View, b: View) -> bool:
    return a.span[0] < b.span[1] and b.span[0] < a.span[1]


def _place(place: Place) -> object:
    """Return a place that is equal for two sides if a transfer copies elements onto themselves."""
    return (place.offset, place.shape, place.strides) if isinstance(place, View) else None


def stays_in_place(model: Model) -> bool:
    """Return whether a model has variables, before or after lambda lifting."""
    return bool(model.variables()) or any(
        port.name.startswith(ASSIGN_PREFIX) for port in model.outputs
    )
