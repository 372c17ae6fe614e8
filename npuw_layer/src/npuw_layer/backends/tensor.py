"""Tensors like those of OpenVINO's Python API, and the base of objects that hold device memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Never, SupportsIndex

from npuw_layer.backends.protocols import Array
from npuw_layer.errors import RequestError


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of a request; the next inference may overwrite ``data``."""

    data: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """Dimensions of the tensor."""
        return self.data.shape

    @property
    def byte_size(self) -> int:
        """Bytes of its elements."""
        return self.data.nbytes


class Uncopied:
    """An object that copy, deepcopy and pickle reject with a typed error."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> Never:
        """Reject copies and pickles.

        Raises:
            RequestError: always.
        """
        raise RequestError(
            f"{type(self).__name__}: objects with device memory cannot be copied or pickled; "
            "create another one"
        )
