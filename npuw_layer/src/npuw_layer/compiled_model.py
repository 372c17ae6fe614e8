"""A model ready to run, as OpenVINO's Python API gives it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, overload

from npuw_layer.batching.engine import ContinuousBatching
from npuw_layer.devices.used import execution_devices
from npuw_layer.errors import RemoteError
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.exported import export_llm
from npuw_layer.llm.infer_request import InferRequest
from npuw_layer.model_blob.exported import export_to
from npuw_layer.offload.ports import ReportsOffload
from npuw_layer.properties import EXECUTION_DEVICES, LOADED_FROM_CACHE, Facts, read_property
from npuw_layer.remote.context import RemoteContext
from npuw_layer.remote.npu import npu_of

if TYPE_CHECKING:
    from npuw_layer.offload.report import OffloadReport
    from npuw_layer.sharing.usage import SharingReport


class SplitModel:
    """What all models that NPUW split have in common.

    Args:
        compiled: their static models.
    """

    def __init__(self, compiled: CompiledLLM) -> None:
        self._compiled = compiled
        self._options = compiled.options

    def get_context(self) -> RemoteContext:
        """Give the context whose tensors its requests take: that of its Core.

        Raises:
            RemoteError: it runs on other devices than the NPU.
        """
        npu = npu_of(self._compiled.device)
        if npu is None:
            raise RemoteError(
                f"NPUW_DEVICES = {self._options.devices}: remote tensors are memory of the NPU, "
                "which the model does not run on"
            )
        return RemoteContext(npu)

    def sharing(self) -> SharingReport | None:
        """Tell what sharing weights with other processes saves; None if none are shared."""
        return None if self._compiled.shared is None else self._compiled.shared.report()

    @overload
    def export_model(self, target: None = None, /) -> bytes: ...
    @overload
    def export_model(self, target: str | Path | BinaryIO, /) -> None: ...

    def export_model(self, target: str | Path | BinaryIO | None = None, /) -> bytes | None:
        """Write all programs to one file, which ``Core.import_model`` loads.

        Args:
            target: a path, whose file is replaced when all is written; or a stream. None gives the
                bytes.

        Raises:
            OptionError: the device's programs cannot be exported.
            ModelError: the model's files have changed since it was compiled.
            NpuwFault: the disk is full, or the folder is read-only.
        """
        return export_to(target, partial(export_llm, self._compiled))

    def offload_report(self) -> OffloadReport | None:
        """What is offloaded, and what that costs; None without NPUW_WEIGHTS_OFFLOAD."""
        device = self._compiled.device
        return device.offload_report() if isinstance(device, ReportsOffload) else None

    def get_property(self, name: str) -> Any:
        """Give an option by OpenVINO's name, as it was set; lengths are not rounded.

        Args:
            name: of an option, maps of stages among them; or SUPPORTED_PROPERTIES, a dict of all
                names, each with "RO"; or LOADED_FROM_CACHE; or EXECUTION_DEVICES.

        Raises:
            OptionError: there is no such option.
        """
        facts: Facts = {
            LOADED_FROM_CACHE: lambda: self._compiled.origin.from_cache,
            EXECUTION_DEVICES: lambda: execution_devices(self._compiled.device, self._options),
        }
        return read_property(name, self._options, facts)


class CompiledModel(SplitModel):
    """An LLM ready to run."""

    def create_infer_request(self) -> InferRequest:
        """Begin a conversation, independent of all others."""
        return InferRequest(self._compiled)

    def create_batching(self, places: int = 0) -> ContinuousBatching:
        """Let several conversations share the device; NPUW_LLM_BATCH_SLOTS says how many at once.

        Args:
            places: how many conversations hold caches at the same time; 0 is as many as slots.
        """
        return ContinuousBatching(self._compiled, places)
