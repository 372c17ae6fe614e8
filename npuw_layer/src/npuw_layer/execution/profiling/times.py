"""What a layer of a program takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LayerTime:
    """A layer of one run; nanoseconds of the device, which a simulated one has of its own."""

    name: str
    kind: str
    """What it computes, e.g. "MatMul"; empty if the program does not say."""
    ran: bool
    """Whether anything was left of it to run."""
    start_ns: int
    """Since the run began."""
    duration_ns: int
    """From its first task's begin to its last one's end; layers overlap."""
    dpu_ns: int
    sw_ns: int
    dma_ns: int
    """Sums of its tasks on DPU, SHAVE and DMA."""
