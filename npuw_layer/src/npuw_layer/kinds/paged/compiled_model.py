"""A model with paged attention ready to run, with the interface of OpenVINO's Python API."""

from __future__ import annotations

from npuw_layer.kinds.paged.compiled import CompiledPaged
from npuw_layer.kinds.paged.infer_request import PagedInferRequest
from npuw_layer.kinds.paged.names import OPTION
from npuw_layer.kinds.paged.ports import PagedPort
from npuw_layer.kinds.static.parts import PartsModel
from npuw_layer.tensors.names import VOCABULARY


class PagedCompiledModel(PartsModel[CompiledPaged, PagedPort, PagedPort]):
    """A model whose K and V are stored in pages of the caller's caches (NPUW_PA)."""

    option = OPTION

    @property
    def inputs(self) -> list[PagedPort]:
        """Inputs of the model; ports of caches show the shape of a block."""
        every = self._compiled.parts[-1].inputs
        return [PagedPort.of_row(one) for one in every if not one.any_name.startswith(VOCABULARY)]

    @property
    def outputs(self) -> list[PagedPort]:
        """Outputs of the model, with a row for each token, or for each sampled token."""
        return [PagedPort.of_row(one) for one in self._compiled.parts[-1].outputs]

    def create_infer_request(self) -> PagedInferRequest:
        """Create a request, independent of others except through common caches."""
        return PagedInferRequest(self._compiled, self.inputs, self.outputs)
