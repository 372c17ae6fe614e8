"""Base class of all ops of the ``ov`` dialect."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self, cast

from xdsl.dialects.builtin import (
    BoolAttr,
    DenseArrayBase,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    f64,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, ParsePropInAttrDict, irdl_op_definition
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from compiler_layer.dialects.ov.types import Tensor, tensor, tensor_type

_UNKNOWN = tensor("f32", ())
"""Placeholder of a result's type until it is inferred."""

NAME_ATTRIBUTE = "ov.name"
"""Discardable attribute that holds an op's friendly name in the model."""

OPS: dict[str, type[OvOp]] = {}
"""Op classes by OpenVINO's name."""


class OvOp(IRDLOperation, ABC):
    """Operation with OpenVINO's name and semantics.

    Operands and results are ranked tensors. The result types follow from the operands' types and,
    where OpenVINO defines so, from the values of constant operands. A class without ABC among its
    bases defines an op of the dialect, which has the class's name.
    """

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "`(` operands `)` attr-dict `:` functional-type(operands, results)"

    def __init_subclass__(cls) -> None:
        if ABC not in cls.__bases__:
            cls.name = f"ov.{cls.__name__}"
            OPS[cls.__name__] = irdl_op_definition(cls)

    @abstractmethod
    def infer(self) -> list[Tensor]:
        """Return the result types.

        Raises:
            ValueError: the operands do not fit together.
        """

    @classmethod
    def make(
        cls, operands: Sequence[SSAValue | Sequence[SSAValue]], **properties: Attribute
    ) -> Self:
        """Build an op of this class with inferred result types.

        Args:
            operands: one entry per operand definition; variadic ones take a sequence.
            properties: by name.

        Raises:
            ValueError: the operands do not fit together.
        """
        count = len(cls.get_irdl_definition().results)
        op = cls(operands=operands, properties=properties, result_types=[_UNKNOWN] * count)
        op.refresh_types()
        return op

    def refresh_types(self) -> bool:
        """Set the result types to those of ``infer``; return whether any changed.

        Raises:
            ValueError: the operands do not fit together.
        """
        changed = False
        for result, kind in zip(self.results, self.infer(), strict=True):
            if result.type != kind:
                Rewriter.replace_value_with_new_type(result, kind)
                changed = True
        return changed

    @property
    def friendly_name(self) -> str:
        """Name of the op in the model, or ""."""
        name = self.attributes.get(NAME_ATTRIBUTE)
        return name.data if isinstance(name, StringAttr) else ""

    @property
    def described(self) -> str:
        """Type and name of the op, for messages."""
        name = self.friendly_name
        return f"{self.name} {name!r}" if name else self.name

    def verify_(self) -> None:
        """Check the result types against ``infer``; called by xDSL."""
        try:
            expected = self.infer()
        except ValueError as error:
            raise VerifyException(f"{self.name} {self.friendly_name}: {error}") from None
        actual = [result.type for result in self.results]
        if actual != expected:
            wanted = ", ".join(map(str, expected))
            raise VerifyException(f"{self.name} {self.friendly_name}: result should be {wanted}")


class SameType(OvOp, ABC):
    """Op whose result has the type of the first operand."""

    def infer(self) -> list[Tensor]:
        """Return the operand's type."""
        return [tensor_type(self.operands[0])]


def int_attr(value: int) -> IntegerAttr:
    """Return an i64 attribute."""
    return IntegerAttr(value, 64)


def ints_attr(values: Sequence[int]) -> DenseArrayBase[IntegerType]:
    """Return an attribute with a list of i64."""
    return DenseArrayBase.from_list(i64, list(values))


def float_attr(value: float) -> FloatAttr[Float64Type]:
    """Return an f64 attribute."""
    return FloatAttr(value, f64)


def bool_attr(value: bool) -> BoolAttr:
    """Return a boolean attribute."""
    return BoolAttr.from_bool(value)


def int_value(attribute: Attribute) -> int:
    """Return the value of an integer or boolean attribute."""
    return cast(IntegerAttr[Any], attribute).value.data
