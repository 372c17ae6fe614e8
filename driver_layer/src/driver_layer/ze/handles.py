"""The base class of Level Zero objects, which are alive until they are destroyed."""

from __future__ import annotations

from typing import ClassVar, Never, SupportsIndex

from driver_layer.errors import DriverUsageError
from driver_layer.ze.result import ze_result_t


class Handle:
    """Handle of an object; callers hold handles."""

    null: ClassVar = ze_result_t.ZE_RESULT_ERROR_INVALID_NULL_HANDLE
    """Result code of a call that receives None instead of the handle."""

    def __init__(self) -> None:
        self.alive = True

    def __reduce_ex__(self, protocol: SupportsIndex) -> Never:
        """Reject copies and pickles: a handle names one object of the device.

        Raises:
            DriverUsageError: always.
        """
        raise DriverUsageError(
            f"{type(self).__name__}: a handle cannot be copied or pickled; create another one"
        )
