"""A model with paged attention ready to run, as OpenVINO's Python API gives it."""

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
    """A model whose K and V lie in pages that are the caller's (NPUW_PA)."""

    @property
    def inputs(self) -> list[PagedPort]:
        """Its inputs; those of caches tell what a block is like."""
        return inputs_of(self._compiled)

    @property
    def outputs(self) -> list[PagedPort]:
        """Its outputs."""
        return outputs_of(self._compiled)

    def create_infer_request(self) -> PagedInferRequest:
        """Make a request, independent of all others but for caches that they are given."""
        return PagedInferRequest(self._compiled)

    def get_context(self) -> RemoteContext:
        """Give the context of its Core, whose tensors requests take."""
        return RemoteContext(self._compiled.largest.npu)

    def _write(self, file: BinaryIO) -> None:
        raise OptionError(
            f"{OPTION} = YES: such a model is not exported, as in the original; CACHE_DIR keeps "
            "what is compiled of it"
        )
