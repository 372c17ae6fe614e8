"""What the blocks of a decoder share."""

from __future__ import annotations

from dataclasses import dataclass

from compiler_layer.builder import GraphBuilder
from compiler_layer.frontends.huggingface.decoder import Decoder
from compiler_layer.frontends.huggingface.weights import Weights


@dataclass(frozen=True, slots=True)
class Scope:
    """Where ops go, where weights come from, and what the model is like."""

    g: GraphBuilder
    weights: Weights
    decoder: Decoder
    prefix: str = ""
    """What the names of modules begin with: nothing, or a layer's name and a point."""

    def layer(self, number: int) -> Scope:
        """The same for the modules of a layer."""
        prefix = self.decoder.names.layer.format(number) + "."
        return Scope(self.g, self.weights, self.decoder, prefix)
