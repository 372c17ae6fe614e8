"""Bytes of a request's tensors that were copied, or read and written in place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class TensorTransfers:
    """Bytes of one tensor, summed over all inferences of a request."""

    bound_to: str = ""
    """Short description of the memory that the tensor is bound to."""
    host_to_device: int = 0
    """Bytes copied before inferences."""
    device_to_host: int = 0
    """Bytes copied after inferences."""
    in_place: int = 0
    """Bytes that the device read or wrote directly in the caller's tensor."""

    def __str__(self) -> str:
        parts = [
            f"{count:,} B {what}"
            for count, what in (
                (self.host_to_device, "copied in"),
                (self.device_to_host, "copied out"),
                (self.in_place, "in place"),
            )
            if count
        ]
        return f"{self.bound_to}: {', '.join(parts) or 'nothing yet'}"


@dataclass(slots=True)
class Transfers:
    """All tensors of a request: inputs and outputs by name, variables as "variable NAME"."""

    tensors: dict[str, TensorTransfers] = field(default_factory=dict[str, TensorTransfers])
    inferences: int = 0

    def of(self, name: str) -> TensorTransfers:
        """Return the counters of a tensor."""
        return self.tensors.setdefault(name, TensorTransfers())

    @property
    def host_to_device(self) -> int:
        """Bytes copied before inferences."""
        return sum(tensor.host_to_device for tensor in self.tensors.values())

    @property
    def device_to_host(self) -> int:
        """Bytes copied after inferences."""
        return sum(tensor.device_to_host for tensor in self.tensors.values())

    @property
    def in_place(self) -> int:
        """Bytes that the device read or wrote directly in the callers' tensors."""
        return sum(tensor.in_place for tensor in self.tensors.values())

    def reset(self) -> None:
        """Set all counters to zero."""
        self.inferences = 0
        for tensor in self.tensors.values():
            tensor.host_to_device = tensor.device_to_host = tensor.in_place = 0

    def report(self) -> Mapping[str, str]:
        """Return a readable report: the sums, and a line for each tensor."""
        sums = {
            "inferences": f"{self.inferences:,}",
            "copied host → device": f"{self.host_to_device:,} B",
            "copied device → host": f"{self.device_to_host:,} B",
            "in place": f"{self.in_place:,} B",
        }
        return sums | {name: str(tensor) for name, tensor in self.tensors.items()}
