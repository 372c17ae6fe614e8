"""Memory of an offloaded model, and the cost of its copies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from npuw_layer.execution.offload.timeline import PassTime


@dataclass(frozen=True, slots=True)
class StageTimes:
    """Predicted times of one static model on the simulated device.

    Attributes:
        name: numbers of its tokens, e.g. "1 token after 255".
        resident: with all weights in device memory.
        synchronous: with a wait for each copy.
        asynchronous: with copies during the layers.
    """

    name: str
    resident: PassTime
    synchronous: PassTime
    asynchronous: PassTime

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.asynchronous.ns / 1e6:.2f} ms with copies ahead, "
            f"{self.synchronous.ns / 1e6:.2f} with a wait for each copy, "
            f"{self.resident.ns / 1e6:.2f} with all weights on the device"
        )


@dataclass(frozen=True, slots=True)
class OffloadReport:
    """Memory of weights, copies so far, and predicted times; bytes and seconds.

    Attributes:
        mode: SYNC or ASYNC.
        layers: number of layers.
        moving: number of layers whose weights are copied in each pass.
        slots: places for the weights of a layer in device memory.
        layer_bytes: weights of one layer.
        weight_bytes: all weights, if they were in device memory.
        device_bytes: device memory for weights, at most and at any time.
        copies: copies of a layer's weights so far.
        copied_bytes: bytes of these copies.
        wait_seconds: time that the host waited for copies so far.
        stages: predicted times, one for each static model.
    """

    mode: str
    layers: int
    moving: int
    slots: int
    layer_bytes: int
    weight_bytes: int
    device_bytes: int
    copies: int
    copied_bytes: int
    wait_seconds: float
    stages: tuple[StageTimes, ...]

    def described(self) -> dict[str, str]:
        """Return the report as readable lines."""
        simulated = "; ".join(map(str, self.stages))
        return {"weights offload": str(self), "weights offload, simulated": simulated}

    def __str__(self) -> str:
        mib = 1 << 20
        return (
            f"{self.mode}: {self.device_bytes / mib:.1f} of {self.weight_bytes / mib:.1f} MiB in "
            f"device memory, {self.moving} of {self.layers} layers through {self.slots} slots; "
            f"{self.copied_bytes / mib:.1f} MiB copied, {self.wait_seconds:.3f} s of waiting"
        )


@runtime_checkable
class ReportsOffload(Protocol):
    """Ability of a device: weight offload with a report."""

    def offload_report(self) -> OffloadReport:
        """Report the memory of weights, the copies so far, and predicted times."""
        ...
