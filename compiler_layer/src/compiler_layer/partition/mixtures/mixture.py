"""Description of a mixture of experts in a graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from compiler_layer.dialects.ov.types import shape_of


@dataclass(frozen=True, eq=False, slots=True)
class Mixture:
    """Weighted sum of experts' rows, for T tokens with K chosen experts each.

    Attributes:
        rows: input of all experts, T rows of C channels, as [..., C].
        ids: the experts that each token chose, integers [T, K]; distinct for each token.
        weights: the experts' weights, T x K floats in the order of ``ids``.
        output: the sum, T rows of H channels, as [..., H].
        terms: the addend of each expert, by its number, in the order of the sum; a stacked mixture
            has one value for all experts, [E, T, ...].
        columns: values with one number for each row of a term: the expert's weight there.
        stacked: True if the terms are one value.
        ops: all ops between the inputs and the output.
    """

    rows: SSAValue
    ids: SSAValue
    weights: SSAValue
    output: SSAValue
    terms: Mapping[int, SSAValue]
    columns: frozenset[SSAValue]
    stacked: bool
    ops: frozenset[Operation]

    @property
    def tokens(self) -> int:
        """Number of tokens, T."""
        return shape_of(self.ids)[0]

    @property
    def slots(self) -> int:
        """Number of chosen experts per token, K."""
        return shape_of(self.ids)[1]
