"""Python's search for cycles of dead objects, put off while a model is read and compiled."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def collected_later() -> Generator[None]:
    """Put off the search until the block ends.

    A compilation makes millions of objects that live to its end. Each search looks at all of them
    and finds next to nothing: without it, a prefill model compiles in about two thirds of the time.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
