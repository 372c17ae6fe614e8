"""The driver extension's function table, 1.0.

Source: docs/reference/level_zero.md#context-and-driver-extensions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from driver_layer.ze.calls import checked
from driver_layer.ze.driver import (
    DRIVER_EXTENSION,
    extension_tables,
    table_of,
    ze_driver_handle_t,
)


@dataclass(frozen=True, slots=True)
class ze_driver_extension_npu_ext_t:
    """Name and version of an extension; the table is a result, not a field, unlike in C."""

    name: str
    version: int


class ze_driver_npu_dditable_ext_t:
    """The function table; its functions raise ZeError for C's result codes."""

    @checked
    def pfnGetExtension(
        self, hDriver: ze_driver_handle_t, pExtension: ze_driver_extension_npu_ext_t
    ) -> Any:
        """Return an extension's function table.

        Raises:
            ZeError: INVALID_ARGUMENT: the extension is unknown or has no table;
                UNSUPPORTED_VERSION: the version is newer than the driver's.
        """
        return table_of(pExtension.name, pExtension.version)


_TABLE = ze_driver_npu_dditable_ext_t()
extension_tables[DRIVER_EXTENSION] = lambda: _TABLE
