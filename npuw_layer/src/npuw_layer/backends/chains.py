"""Programs that run one behind the other, by one submission where the device can."""

from __future__ import annotations

from collections.abc import Callable

from npuw_layer.backends.protocols import Program, RunsTogether


def in_order(first: Program, second: Program) -> Callable[[], None]:
    """Return what runs two programs to the end, the second behind the first."""
    together = first.followed_by(second) if isinstance(first, RunsTogether) else None

    def one_by_one() -> None:
        first.run()
        second.run()

    return together or one_by_one
