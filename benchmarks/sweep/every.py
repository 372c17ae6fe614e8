"""The sweeps, in the order in which they run and are reported."""

from __future__ import annotations

from collections.abc import Callable

from sweep import lengths, options, requests, rows, samplers, turns
from sweep.figures import Table
from sweep.subject import Subject

SWEEPS: dict[str, Callable[[Subject], Table]] = {
    module.__name__.rpartition(".")[2]: module.sweep
    for module in (lengths, turns, requests, rows, samplers, options)
}
