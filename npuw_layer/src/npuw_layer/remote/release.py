"""Gives a tensor's memory back when nobody holds the tensor any more.

A tensor that is part of a cycle is found by the garbage collector, which may run anywhere: also
where the driver is just about to change its tables, and holds their lock. So what dies in a
collection waits for the next time that memory is asked for; anything else goes back at once.
"""

from __future__ import annotations

import gc
import weakref
from queue import Empty, SimpleQueue

from npuw_layer.remote.memory import Piece

_waiting: SimpleQueue[Piece] = SimpleQueue()
"""Made to be used by what may run anywhere."""

_collecting = False


def _note_phase(phase: str, _: dict[str, int]) -> None:
    global _collecting
    _collecting = phase == "start"


gc.callbacks.append(_note_phase)


def release_with(tensor: object, piece: Piece) -> None:
    """Give a piece back when a tensor is gone."""
    weakref.finalize(tensor, _release, piece)


def _release(piece: Piece) -> None:
    if _collecting:
        _waiting.put(piece)
    else:
        piece.release()


def release_waiting() -> None:
    """Give back what died in collections."""
    while True:
        try:
            piece = _waiting.get_nowait()
        except Empty:
            return
        piece.release()
