"""State shared by the blocks of a decoder."""

from __future__ import annotations

from dataclasses import dataclass

from compiler_layer.builder import GraphBuilder
from compiler_layer.frontends.huggingface.decoder import Decoder
from compiler_layer.frontends.huggingface.weights import Weights


@dataclass(frozen=True, slots=True)
class Scope:
    """Graph under construction, source of the weights, and description of the model."""

    g: GraphBuilder
    weights: Weights
    decoder: Decoder
    prefix: str = ""
    """Prefix of module names: empty, or a layer's name and a point."""

    def layer(self, number: int) -> Scope:
        """Return the scope for the modules of a layer."""
        prefix = self.decoder.names.layer.format(number) + "."
        return Scope(self.g, self.weights, self.decoder, prefix)
