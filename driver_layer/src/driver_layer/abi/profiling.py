"""What profiling leaves in memory: a record per task, in nanoseconds.

Whose work a task is, the record does not say; the blob's layer map does. The real device writes
records of different lengths for DMA, DPU and SHAVE, with counters that nobody simulates here.

Source: this project's own; see fact sheet elf_driver §1.8 for the original's.
"""

from __future__ import annotations

from driver_layer.abi.layout import record

TASK_TIME = record(
    32,
    ("kind", 0, "u1"),
    ("number", 1, "u1"),
    ("index", 4, "<u4"),
    ("begin_ns", 8, "<u8"),
    ("end_ns", 16, "<u8"),
    ("alone_ns", 24, "<u8"),
)
"""A task: its queue (an index into ``layer_map.QUEUE_KINDS``, and the port or tile), its place in
it, when it ran since the inference began, and how long it takes that has the device for itself."""
