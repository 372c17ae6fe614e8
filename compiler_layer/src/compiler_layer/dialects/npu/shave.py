"""SHAVE ops: kernels, which are programs over rows."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    opt_prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsTerminator, SingleBlockImplicitTerminator

from compiler_layer.dialects.npu.dpu import TileAttr
from compiler_layer.dialects.ov.types import Shape, Tensor, broadcast, shape_of


@irdl_op_definition
class Yield(IRDLOperation):
    """Terminator of a kernel, with its results."""

    name = "npu.yield"
    values = var_operand_def(Tensor)
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict ($values^ `:` type($values))?"

    def __init__(self, *values: SSAValue) -> None:
        super().__init__(operands=[list(values)])


@irdl_op_definition
class Kernel(IRDLOperation):
    """One SHAVE program: row-wise ``ov`` ops that share an iteration domain.

    The domain is the shape that all values of the body broadcast to; its last dimension is a row.
    Values in the body are f32 registers, whatever their types are; only the types of the kernel's
    inputs and outputs apply. ``tile`` is the block of the domain that a tile computes at a time;
    ``tiles`` NCE tiles share the blocks.
    """

    name = "npu.kernel"
    inputs = var_operand_def(Tensor)
    outputs = var_result_def(Tensor)
    body = region_def("single_block")
    tile = opt_prop_def(TileAttr)
    tiles = opt_prop_def(IntegerAttr)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(SingleBlockImplicitTerminator(Yield))
    assembly_format = "`(` operands `)` $body attr-dict `:` functional-type(operands, results)"

    def __init__(
        self, inputs: Sequence[SSAValue], result_types: Sequence[Attribute], body: Block
    ) -> None:
        super().__init__(
            operands=[list(inputs)], result_types=[list(result_types)], regions=[Region(body)]
        )

    @property
    def domain(self) -> Shape:
        """Iteration domain; a kernel of scalars runs over one row of one element."""
        results = (result for op in self.body.block.ops for result in op.results)
        return broadcast(*map(shape_of, self.body.block.args), *map(shape_of, results)) or (1,)
