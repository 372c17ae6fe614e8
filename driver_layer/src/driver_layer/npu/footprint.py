"""What inferences of one blob have in common but for where it lies.

They run the same tasks on memory of their own. So what was prepared for one of them serves another,
when each address in it is moved to where the other has the same thing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class Kin:
    """Stands for all inferences that are clones of one."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """The memory of an inference.

    Attributes:
        kin: equal for inferences of one blob.
        spans: device address and size of all that its tasks may reach, CMX apart: its sections and
            the caller's buffers, in an order that all of kin share.
    """

    kin: Kin
    spans: Sequence[tuple[int, int]]
