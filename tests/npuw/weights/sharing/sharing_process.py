"""A process that shares an arena, for tests to start, question and kill.

Run with the arena's name and the seconds that copying each of its weights takes. It reports its
progress in lines of JSON, and answers "check", "report", "fork" and "leave".
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import numpy as np

from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.backends.level_zero import LevelZeroDevice
from npuw_layer.weights.sharing.arena import SharedArena, join_arena
from npuw_layer.weights.stored_weights import plan_layout

LAYOUT = plan_layout({f"weight {number}": 100_000 + number for number in range(20)})


def expected() -> dict[str, np.ndarray]:
    """Return the weights, u8."""
    draw = np.random.default_rng(5)
    return {
        name: draw.integers(1, 256, slot.nbytes, np.uint8) for name, slot in LAYOUT.slots.items()
    }


def is_right(arena: np.ndarray) -> bool:
    """Return whether the arena has all weights."""
    return all(
        np.array_equal(arena[slot.offset : slot.offset + slot.nbytes], weight)
        for slot, weight in zip(LAYOUT.slots.values(), expected().values(), strict=True)
    )


def copy_slowly(arena: np.ndarray, seconds: float) -> None:
    """Fill an arena, weight by weight."""
    for name, weight in expected().items():
        slot = LAYOUT.slots[name]
        arena[slot.offset : slot.offset + slot.nbytes] = weight
        say({"copied": name})
        time.sleep(seconds)


def new_device() -> LevelZeroDevice:
    """Create a separate device."""
    return LevelZeroDevice(StaticCompiler(), "4000")


def join(identity: str, seconds: float = 0) -> SharedArena:
    """Attach to the arena, or create it."""
    return join_arena(new_device(), identity, LAYOUT, lambda arena: copy_slowly(arena, seconds))


def say(what: Any) -> None:
    """Report to the test."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Follow the arguments and the lines of the input."""
    arena = join(sys.argv[1], float(sys.argv[2]))
    say({"joined": is_right(arena.memory.data)})
    for line in sys.stdin:
        if line.strip() == "check":
            say(is_right(arena.memory.data))
        elif line.strip() == "report":
            report = arena.report()
            say([sorted(report.processes), report.resident_bytes, report.unshared_bytes])
        elif line.strip() == "fork":
            child = os.fork()
            if child == 0:
                time.sleep(600)
            say(child)
        else:
            arena.close()
            say("left")


if __name__ == "__main__":
    main()
