"""What offload needs of a device besides ``backends.protocols.Device``, and what it tells.

Nothing here loads the rest of it: whoever does not offload has no use for that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from npuw_layer.backends.protocols import Compiler, Device, Memory

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from compiler_layer.pieces import CompiledPieces
    from npuw_layer.execution.offload.report import OffloadReport


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes to be copied: from the host's memory to the device's."""

    target: Memory
    target_offset: int
    source: Memory
    source_offset: int
    nbytes: int


class Transfer(Protocol):
    """Copies that were recorded together, to be made as often as wanted."""

    def start(self) -> None:
        """Begin; it returns at once, and copies are made in the order in which they begin.

        Raises:
            DeviceError: the device refused.
        """
        ...

    def wait(self) -> None:
        """Wait for what was started last.

        Raises:
            DeviceError: a copy failed.
        """
        ...


@dataclass(frozen=True, slots=True)
class Cost:
    """What something takes on the device if it has it for itself."""

    ns: float
    ddr_bytes: float
    """What it reads and writes in the device's memory."""


@runtime_checkable
class ReportsOffload(Protocol):
    """A device whose models' weights are offloaded."""

    def offload_report(self) -> OffloadReport:
        """Say what is where, what was copied, and what the simulated device would take."""
        ...


@runtime_checkable
class PieceCompiler(Compiler, Protocol):
    """A compiler that cuts models."""

    def compile_pieces(self, model: Model, config: Mapping[str, str]) -> CompiledPieces:
        """Cut and compile, as ``OffloadingDevice.compile_pieces`` says."""
        ...


@runtime_checkable
class OffloadingDevice(Device, Protocol):
    """A device that copies while it computes."""

    def compile_pieces(self, model: Model, config: Mapping[str, str]) -> CompiledPieces:
        """Cut a static graph at its repeated block and compile the pieces, without weights.

        Args:
            model: consumed; folded with its first two layers, or not at all.
            config: as for ``compile``.

        Raises:
            NotFolded: it repeats no block, or not often enough.
            RuntimeError: it is not supported, or does not fit.
        """
        ...

    def record_copies(self, spans: Sequence[Span]) -> Transfer:
        """Get copies ready, to run beside programs.

        Raises:
            DeviceError: a span is not in memory of this device.
        """
        ...

    def predict(self, program: bytes | memoryview) -> Cost:
        """What a program costs on the simulated device."""
        ...

    def predict_copy(self, nbytes: int) -> Cost:
        """What a copy from the host's memory costs on the simulated device."""
        ...

    @property
    def ddr_bytes_per_ns(self) -> float:
        """What programs and copies share."""
        ...
