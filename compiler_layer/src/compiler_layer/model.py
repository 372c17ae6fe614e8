"""Model: one graph of the ``ov`` dialect with named inputs, outputs and variables.

Frontends write this representation, npuw splits it, and the compiler reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, Builtin, DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import Func, FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.parser import Parser
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import ParseError, VerifyException

from compiler_layer.dialects.npu import NPU
from compiler_layer.dialects.ov import OV
from compiler_layer.dialects.ov.state import Assign, ReadValue
from compiler_layer.dialects.ov.types import Shape, Tensor, element_of, tensor, tensor_type
from compiler_layer.errors import CompilerUsageError

Access = TypeVar("Access", ReadValue, Assign)

PORT_NAME = "ov.names"
"""Attribute of arguments and results that holds their tensor name."""


@dataclass(frozen=True, slots=True)
class Port:
    """Input or output of a model."""

    name: str
    value: SSAValue

    @property
    def type(self) -> Tensor:
        """Tensor type of the value."""
        return tensor_type(self.value)


@dataclass(frozen=True, slots=True)
class PortNames:
    """Names of a parameter or result of the OpenVINO model that a model was read from."""

    friendly: str
    tensors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ModelNames:
    """Names of all parameters and results, in order."""

    inputs: tuple[PortNames, ...] = ()
    outputs: tuple[PortNames, ...] = ()


@dataclass(frozen=True, slots=True)
class PortSelection:
    """Names of some inputs and outputs."""

    inputs: frozenset[str] = frozenset()
    outputs: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.inputs or self.outputs)


NO_PORTS = PortSelection()


@dataclass(frozen=True, slots=True)
class Variable:
    """Variable of a stateful model, with the op that reads it and the op that assigns it."""

    name: str
    read: ReadValue | None
    assign: Assign | None


class Model:
    """Module with one function ``main``.

    Args:
        module: adopted, not copied.

    Raises:
        CompilerUsageError: the module has no function ``main`` with a return.
    """

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        functions = [op for op in module.ops if isinstance(op, FuncOp)]
        mains = [function for function in functions if function.sym_name.data == "main"]
        if len(mains) != 1 or not isinstance(mains[0].body.block.last_op, ReturnOp):
            raise CompilerUsageError("a model needs exactly one function 'main' with a return")
        self.main = mains[0]

    @staticmethod
    def build(
        inputs: Sequence[tuple[str, Tensor]],
    ) -> tuple[Model, Sequence[SSAValue]]:
        """Create a model without ops and outputs; return it and its arguments."""
        function = FuncOp("main", ([kind for _, kind in inputs], []))
        function.arg_attrs = _port_attributes([name for name, _ in inputs])
        function.body.block.add_op(ReturnOp())
        return Model(ModuleOp([function])), function.body.block.args

    @property
    def body(self) -> Block:
        """Block of ops, in an executable order."""
        return self.main.body.block

    @property
    def ops(self) -> list[Operation]:
        """Snapshot of the ops; the graph may change during iteration over it.

        ``list(body.ops)`` asks xDSL for the length first, and so visits each op twice.
        """
        ops: list[Operation] = []
        op = self.body.first_op
        while op is not None:
            ops.append(op)
            op = op.next_op
        return ops

    @property
    def terminator(self) -> ReturnOp:
        """Return op of ``main``."""
        last = self.body.last_op
        assert isinstance(last, ReturnOp)
        return last

    @property
    def inputs(self) -> list[Port]:
        """Arguments, in order."""
        names = _port_names(self.main.arg_attrs, len(self.body.args))
        return [Port(name, value) for name, value in zip(names, self.body.args, strict=True)]

    @property
    def outputs(self) -> list[Port]:
        """Results, in order."""
        values = self.terminator.operands
        names = _port_names(self.main.res_attrs, len(values))
        return [Port(name, value) for name, value in zip(names, values, strict=True)]

    def variables(self) -> list[Variable]:
        """Return the variables, in the order of their first appearance.

        Raises:
            CompilerUsageError: a variable is read or assigned twice.
        """
        ops = self.ops
        reads, assigns = _by_variable(ops, ReadValue), _by_variable(ops, Assign)
        names = dict.fromkeys([*reads, *assigns])
        return [Variable(name, reads.get(name), assigns.get(name)) for name in names]

    def set_outputs(self, outputs: Sequence[tuple[str, SSAValue]]) -> None:
        """Replace the results."""
        Rewriter.replace_op(self.terminator, ReturnOp(*[value for _, value in outputs]), [])
        self.main.res_attrs = _port_attributes([name for name, _ in outputs])
        self.refresh_signature()

    def set_inputs(self, names: Sequence[str]) -> None:
        """Rename the arguments, after some were added or removed."""
        self.main.arg_attrs = _port_attributes(names)
        self.refresh_signature()

    def find_input(self, name: str) -> SSAValue | None:
        """Return the argument of a name, or None."""
        return next((port.value for port in self.inputs if port.name == name), None)

    def add_input(self, name: str, kind: Tensor) -> SSAValue:
        """Append an argument."""
        names = [port.name for port in self.inputs]
        added = self.body.insert_arg(kind, len(names))
        self.set_inputs([*names, name])
        return added

    def remove_input(self, name: str) -> None:
        """Remove an argument without uses."""
        names = [port.name for port in self.inputs]
        self.body.erase_arg(self.body.args[names.index(name)])
        names.remove(name)
        self.set_inputs(names)

    def set_input_shapes(self, shapes: Mapping[str, Shape]) -> None:
        """Set the shapes of parameters and variables (by id), without propagating them.

        The initial value of such a variable is dropped: the runtime supplies it.

        Raises:
            CompilerUsageError: the parameter or variable does not exist, or the rank differs.
        """
        values: dict[str, SSAValue] = {port.name: port.value for port in self.inputs}
        reads = {v.name: v.read for v in self.variables() if v.read is not None}
        values |= {name: read.output for name, read in reads.items()}
        for name, shape in shapes.items():
            if name in reads:
                reads[name].operands = []
            value = values.get(name)
            if value is None:
                known = ", ".join(sorted(values))
                raise CompilerUsageError(f"no input or variable {name!r}; the model has {known}")
            if len(shape) != len(tensor_type(value).get_shape()):
                raise CompilerUsageError(f"{name!r}: its rank differs from that of {list(shape)}")
            Rewriter.replace_value_with_new_type(value, tensor(element_of(value), shape))
        self.refresh_signature()

    def refresh_signature(self) -> None:
        """Update the function's type from its body."""
        self.main.update_function_type()

    def clone(self) -> Model:
        """Copy the graph; constants are shared, because they are views."""
        return Model(self.module.clone())

    def verify(self) -> None:
        """Verify every op.

        Raises:
            CompilerUsageError: the graph is not valid; xDSL's message shows the op.
        """
        try:
            self.module.verify()
        except VerifyException as error:
            raise CompilerUsageError(f"the graph is not valid: {error}") from None

    def text(self) -> str:
        """Return the model as text; ``parse`` reads it."""
        return str(self.module) + "\n"

    @staticmethod
    def parse(text: str, name: str = "<text>") -> Model:
        """Read a model from text.

        Raises:
            CompilerUsageError: the text is not a model; the message shows the place.
        """
        try:
            return Model(Parser(context(), text, name).parse_module())
        except (ParseError, VerifyException) as error:
            raise CompilerUsageError(str(error)) from None


def _by_variable(ops: Sequence[Operation], kind: type[Access]) -> dict[str, Access]:
    """Return the ops of one kind by their variable.

    Raises:
        CompilerUsageError: a variable has two.
    """
    found: dict[str, Access] = {}
    for op in ops:
        if type(op) is not kind:  # several times as fast as isinstance, with classes of xDSL
            continue
        name = op.variable_id.data
        if name in found:
            raise CompilerUsageError(f"variable {name!r} has two {op.name} ops instead of one")
        found[name] = op
    return found


def context() -> Context:
    """Create an xDSL context with all dialects of this compiler."""
    made = Context()
    for dialect in (Builtin, Func, OV, NPU):
        made.load_dialect(dialect)
    return made


def _port_attributes(names: Sequence[str]) -> ArrayAttr[DictionaryAttr]:
    return ArrayAttr([DictionaryAttr({PORT_NAME: StringAttr(name)}) for name in names])


def _port_names(attributes: ArrayAttr[DictionaryAttr] | None, count: int) -> list[str]:
    entries = attributes.data if attributes is not None else ()
    found = [entry.data.get(PORT_NAME) for entry in entries]
    names = [name.data if isinstance(name, StringAttr) else None for name in found]
    names += [None] * (count - len(names))
    return [name or f"port{index}" for index, name in enumerate(names)]
