"""The record of models with paged attention, which build on static models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from npuw_layer.kinds.paged.options import PagedOptions
from npuw_layer.kinds.static.kind import ThroughNpuw

if TYPE_CHECKING:
    from npuw_layer.backends.protocols import Device
    from npuw_layer.execution.core_devices import CoreDevices
    from npuw_layer.kinds.paged.compiled_model import PagedCompiledModel
    from npuw_layer.options import Options


class PagedKind(ThroughNpuw):
    """Models whose caches are pages of the caller's memory (NPUW_PA)."""

    name = "paged"
    rank = 0
    options = PagedOptions
    because = "its caches belong to the caller, so the model is not split"

    def device(self, devices: CoreDevices, options: Options) -> Device:
        """Return the device that runs all variants; the host computes their attention."""
        from npuw_layer.kinds.paged.compiled import submodels
        from npuw_layer.kinds.paged.isolate import isolations
        from npuw_layer.kinds.paged.names import VARIANT

        return devices.of_static(options, submodels(options), VARIANT, isolations())

    def build(
        self, devices: CoreDevices, device: Device, path: Path, options: Options
    ) -> PagedCompiledModel:
        """Compile the variants for several numbers of tokens."""
        from npuw_layer.kinds.paged.compiled import compile_paged
        from npuw_layer.kinds.paged.compiled_model import PagedCompiledModel

        npu = devices.npu_of(device, options)
        return PagedCompiledModel(compile_paged(path, device, npu, options))


KIND = PagedKind()
