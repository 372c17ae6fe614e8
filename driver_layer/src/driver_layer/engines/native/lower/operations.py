"""What a program's tasks do, task by task or copy by copy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from driver_layer.engines.native.lower.groups import Ints
from driver_layer.engines.native.lower.template import Template

Check = Callable[[int], object]
"""Lets the reference engine judge a task by its index; raises DeviceFault if it is malformed."""


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Operations of one template.

    Attributes:
        template: what they have in common.
        tasks: the index in the queue of the task that each belongs to, ascending.
        addresses: where the device has each slot, [operations, slots].
    """

    template: Template
    tasks: Ints
    addresses: Ints
