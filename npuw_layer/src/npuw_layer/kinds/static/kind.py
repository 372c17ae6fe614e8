"""The record of static models, and the base of kinds whose models go through NPUW as static."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from npuw_layer.api.kind import Kind
from npuw_layer.errors import OptionError

if TYPE_CHECKING:
    from npuw_layer.api.kind import AnyModel
    from npuw_layer.backends.protocols import Device
    from npuw_layer.execution.core_devices import CoreDevices
    from npuw_layer.kinds.static.compiled_model import StaticModel
    from npuw_layer.kinds.static.source import GraphSource
    from npuw_layer.options import Options
    from npuw_layer.storage.model_blob.imported import BlobBytes


class ThroughNpuw(Kind):
    """A kind that an option requests, and whose models go through NPUW as static models."""

    because: ClassVar[str]
    """Reason why the kind needs NPUW without splitting; ends the sentence of an error."""

    def defaults(self, path: Path, options: Options) -> Mapping[str, str]:
        """Return values of options that are not set, by field name."""
        del path, options
        return {}

    def settle(self, path: Path, options: Options) -> Options:
        """Choose NPUW without splitting, and set the kind's defaults."""
        if options.use_npuw is False or options.llm:
            raise OptionError(
                f"{self.requested(options)} = YES needs NPU_USE_NPUW = YES, without NPUW_LLM: "
                f"{self.because}"
            )
        defaults = self.defaults(path, options)
        unset = {name: v for name, v in defaults.items() if name not in options.model_fields_set}
        return options.model_copy(update={**unset, "use_npuw": True, "llm": False})

    def device(self, devices: CoreDevices, options: Options) -> Device:
        """Return the device that runs a model of one program."""
        return devices.of_static(options)

    def build(self, devices: CoreDevices, device: Device, path: Path, options: Options) -> AnyModel:
        """Compile a model as one program."""
        from npuw_layer.kinds.static.compiled import compile_static
        from npuw_layer.kinds.static.compiled_model import ready_static

        npu = devices.npu_of(device, options)
        return ready_static(compile_static(self.source(path), device, npu, options))

    def source(self, path: Path) -> GraphSource:
        """Return the source of the static graph."""
        from npuw_layer.kinds.static.source import GraphSource

        return GraphSource.whole(path)


class StaticKind(ThroughNpuw):
    """Static models: all models that no other kind takes, and those of ONNX Runtime (NPUW_GQA).

    With NPU_USE_NPUW they go through NPUW, which may cut them into submodels for several devices;
    otherwise they go to the NPU itself unchanged.

    Args:
        shapes: shapes of inputs by name, for models with open dimensions.
    """

    name = "static"
    rank = 9
    because = (
        "such a model is static, and its caches are inputs and outputs; leave the option out for "
        "a stateful model"
    )

    def __init__(self, shapes: Mapping[str, Sequence[int]] | None = None) -> None:
        self._shapes = shapes

    def requested(self, options: Options) -> str:
        """Return NPUW_GQA if it is set."""
        return "NPUW_GQA" if options.gqa else ""

    def recognises(self, path: Path, options: Options) -> bool:
        """Return True: the kind of static models is tried last."""
        del path, options
        return True

    def defaults(self, path: Path, options: Options) -> Mapping[str, str]:
        """Return NPUW's defaults for NPUW_GQA."""
        del path, options
        return {"online_pipeline": "REP", "cache_mode": "OPTIMIZE_SPEED"}

    def settle(self, path: Path, options: Options) -> Options:
        """Choose the NPU itself, unless NPU_USE_NPUW or NPUW_GQA is set."""
        if options.gqa:
            return super().settle(path, options)
        return options.model_copy(update={"use_npuw": bool(options.use_npuw), "llm": False})

    def reshaped(self, shapes: Mapping[str, Sequence[int]]) -> Kind:
        """Return the kind of models with these shapes of inputs."""
        return StaticKind(shapes)

    def source(self, path: Path) -> GraphSource:
        """Return the source of the graph with the shapes of inputs."""
        from npuw_layer.kinds.static.source import of_shapes

        whole = super().source(path)
        return whole if self._shapes is None else of_shapes(whole, self._shapes)

    def loads(self, blob: bytes) -> bool:
        """Return whether a file is a blob of a static model, in NPUW's or the plugin's format."""
        from npuw_layer.storage.container import STATIC
        from npuw_layer.storage.native_blob.container import MAGIC

        return blob in (STATIC, MAGIC)

    def load(self, devices: CoreDevices, blob: BlobBytes) -> StaticModel:
        """Load a static model from a file of either format."""
        from npuw_layer.kinds.static.compiled_model import ready_static
        from npuw_layer.kinds.static.imported import import_static, read_static
        from npuw_layer.storage.container import STATIC, kind_of

        read = read_static
        if kind_of(blob.content) != STATIC:
            from npuw_layer.kinds.static.native_blob.imported import read_native as read
        return ready_static(import_static(blob, read, devices.of_static, devices.npu_of))


KIND = StaticKind()
