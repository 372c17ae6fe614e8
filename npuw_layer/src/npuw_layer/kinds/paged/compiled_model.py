"""A model with paged attention ready to run, with the interface of OpenVINO's Python API."""

from __future__ import annotations

from typing import BinaryIO

from npuw_layer.api.ready_model import ReadyModel
from npuw_layer.errors import OptionError
from npuw_layer.kinds.paged.compiled import CompiledPaged
from npuw_layer.kinds.paged.infer_request import PagedInferRequest
from npuw_layer.kinds.paged.names import OPTION
from npuw_layer.kinds.paged.ports import PagedPort, inputs_of, outputs_of
from npuw_layer.remote.context import RemoteContext


class PagedCompiledModel(ReadyModel[CompiledPaged, PagedPort, PagedPort]):
    """A model whose K and V are stored in pages of the caller's caches (NPUW_PA)."""

    @property
    def inputs(self) -> list[PagedPort]:
        """Inputs of the model; ports of caches show the shape of a block."""
        return inputs_of(self._compiled)

    @property
    def outputs(self) -> list[PagedPort]:
        """Outputs of the model."""
        return outputs_of(self._compiled)

    def create_infer_request(self) -> PagedInferRequest:
        """Create a request, independent of others except through common caches."""
        return PagedInferRequest(self._compiled)

    def get_context(self) -> RemoteContext:
        """Return the context of the Core, whose tensors requests accept."""
        return RemoteContext(self._compiled.largest.npu)

    def _write(self, file: BinaryIO) -> None:
        raise OptionError(
            f"{OPTION} = YES: export is not supported, as in NPUW; set CACHE_DIR to keep the "
            "compiled models"
        )
