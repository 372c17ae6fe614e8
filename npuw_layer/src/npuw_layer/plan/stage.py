"""Time and size of one static model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from npuw_layer.backends.arena import padded
from npuw_layer.backends.protocols import ASSIGN_PREFIX, READ_PREFIX
from npuw_layer.options import Options
from npuw_layer.options.base import PER_TOKEN

if TYPE_CHECKING:
    from compiler_layer.estimate import LayerSum
    from compiler_layer.frontends.huggingface.sample import Sample
    from npuw_layer.llm.plan.stages import Stage


@dataclass(frozen=True, slots=True)
class StagePrediction:
    """Predicted costs of one static model; times are the device's, without the host's."""

    stage: Stage
    whole: LayerSum
    scratch_bytes: int
    """Bytes of intermediate tensors."""
    tensor_bytes: int
    """Bytes of its inputs and outputs: ids, mask, logits …, without K and V."""

    @property
    def seconds(self) -> float:
        """Time of one run."""
        return self.whole.ns / 1e9

    @property
    def busy(self) -> dict[str, float]:
        """Shares of memory traffic, matmuls and SHAVE programs in the time."""
        price = self.whole.price
        each = {"DDR": price.dma_ns, "DPU": price.dpu_ns, "SHAVE": price.shave_ns}
        return {name: min(1.0, ns / self.whole.ns) for name, ns in each.items()}

    @property
    def bound(self) -> str:
        """Name of the largest share."""
        return max(self.busy, key=lambda name: self.busy[name])


def plan_stage(sample: Sample, stage: Stage, options: Options) -> StagePrediction:
    """Predict the costs of one static model.

    Raises:
        CompilerError: the compiler would reject the model.
        ModelError: the model cannot be split.
    """
    from compiler_layer.estimate import estimate
    from compiler_layer.pipeline import Options as CompilerOptions
    from npuw_layer.llm.graph.pipeline import stage_graph

    own = options.of_stage(stage.kind.value)
    graph = stage_graph(sample.model, stage, own)
    settings = CompilerOptions(
        precision=own.precision,
        platform=own.platform,
        tiles=max(0, own.tiles),
        integer_activations=own.dynamic_quantization_group_size == PER_TOKEN,
    )
    found = estimate(graph, settings, len(sample.counts), sample.layer_of)
    own_ports = (
        padded(nbytes)
        for name, nbytes in found.port_bytes.items()
        if not name.startswith((READ_PREFIX, ASSIGN_PREFIX))
    )
    return StagePrediction(stage, found.whole(sample.counts), found.scratch_bytes, sum(own_ports))
