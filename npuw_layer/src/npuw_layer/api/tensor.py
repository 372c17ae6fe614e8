"""Tensors as OpenVINO's Python API gives them."""

from __future__ import annotations

from dataclasses import dataclass

from npuw_layer.backends.protocols import Array


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of a request; the next inference may overwrite ``data``."""

    data: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """Its dimensions."""
        return self.data.shape

    @property
    def byte_size(self) -> int:
        """Bytes of its elements."""
        return self.data.nbytes
