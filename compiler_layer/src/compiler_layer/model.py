"""A model: one graph of the ``ov`` dialect with named inputs, outputs and variables.

This is the graph language that frontends write, npuw splits and the compiler takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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

PORT_NAME = "ov.names"
"""The attribute of arguments and results that carries their tensor name."""


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of a model."""

    name: str
    value: SSAValue

    @property
    def type(self) -> Tensor:
        """Its tensor type."""
        return tensor_type(self.value)


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a stateful model: where it is read and where it is assigned."""

    name: str
    read: ReadValue | None
    assign: Assign | None


class Model:
    """A module with one function ``main``.

    Args:
        module: taken over, not copied.

    Raises:
        CompilerUsageError: it has no function ``main`` with a return.
    """

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        functions = [op for op in module.ops if isinstance(op, FuncOp)]
        mains = [function for function in functions if function.sym_name.data == "main"]
        if len(mains) != 1 or not isinstance(mains[0].body.block.last_op, ReturnOp):
            raise CompilerUsageError("a model needs one function 'main' that returns")
        self.main = mains[0]

    @staticmethod
    def build(
        inputs: Sequence[tuple[str, Tensor]],
    ) -> tuple[Model, Sequence[SSAValue]]:
        """Begin a model without ops and outputs; give it and its arguments."""
        function = FuncOp("main", ([kind for _, kind in inputs], []))
        function.arg_attrs = _port_attributes([name for name, _ in inputs])
        function.body.block.add_op(ReturnOp())
        return Model(ModuleOp([function])), function.body.block.args

    @property
    def body(self) -> Block:
        """The ops, in an order in which they can run."""
        return self.main.body.block

    @property
    def ops(self) -> list[Operation]:
        """The ops as they are now: whoever goes through this list may change the graph meanwhile.

        Made by hand, as ``list`` asks xDSL's ops for their length first, and so meets each twice.
        """
        ops: list[Operation] = []
        op = self.body.first_op
        while op is not None:
            ops.append(op)
            op = op.next_op
        return ops

    @property
    def terminator(self) -> ReturnOp:
        """The return."""
        last = self.body.last_op
        assert isinstance(last, ReturnOp)
        return last

    @property
    def inputs(self) -> list[Port]:
        """The arguments, in order."""
        names = _port_names(self.main.arg_attrs, len(self.body.args))
        return [Port(name, value) for name, value in zip(names, self.body.args, strict=True)]

    @property
    def outputs(self) -> list[Port]:
        """The results, in order."""
        values = self.terminator.operands
        names = _port_names(self.main.res_attrs, len(values))
        return [Port(name, value) for name, value in zip(names, values, strict=True)]

    def variables(self) -> list[Variable]:
        """The variables, in the order of their first appearance.

        Raises:
            CompilerUsageError: one is read or assigned twice.
        """
        reads: dict[str, ReadValue] = {}
        assigns: dict[str, Assign] = {}
        for op in self.body.ops:
            if not isinstance(op, ReadValue | Assign):
                continue
            found = (reads, op) if isinstance(op, ReadValue) else (assigns, op)
            name = op.variable_id.data
            if name in found[0]:
                raise CompilerUsageError(f"variable {name!r} has two ops {op.name}")
            found[0][name] = op  # pyright: ignore[reportArgumentType]  # the table matches the op
        names = dict.fromkeys([*reads, *assigns])
        return [Variable(name, reads.get(name), assigns.get(name)) for name in names]

    def set_outputs(self, outputs: Sequence[tuple[str, SSAValue]]) -> None:
        """Replace the results."""
        Rewriter.replace_op(self.terminator, ReturnOp(*[value for _, value in outputs]), [])
        self.main.res_attrs = _port_attributes([name for name, _ in outputs])
        self.refresh_signature()

    def set_inputs(self, names: Sequence[str]) -> None:
        """Name the arguments anew, after some were added or removed."""
        self.main.arg_attrs = _port_attributes(names)
        self.refresh_signature()

    def find_input(self, name: str) -> SSAValue | None:
        """Return the argument of a name; None if there is none."""
        return next((port.value for port in self.inputs if port.name == name), None)

    def add_input(self, name: str, kind: Tensor) -> SSAValue:
        """Append an argument."""
        names = [port.name for port in self.inputs]
        added = self.body.insert_arg(kind, len(names))
        self.set_inputs([*names, name])
        return added

    def remove_input(self, name: str) -> None:
        """Remove an argument that nobody uses."""
        names = [port.name for port in self.inputs]
        self.body.erase_arg(self.body.args[names.index(name)])
        names.remove(name)
        self.set_inputs(names)

    def set_input_shapes(self, shapes: Mapping[str, Shape]) -> None:
        """Give parameters and variables (by id) other shapes, without carrying them through.

        The initial value of such a variable is dropped: whoever runs the model supplies it.

        Raises:
            CompilerUsageError: there is no such parameter or variable, or the rank differs.
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
                raise CompilerUsageError(f"no input or variable {name!r}; there are {known}")
            if len(shape) != len(tensor_type(value).get_shape()):
                raise CompilerUsageError(f"{name!r} has another rank than {list(shape)}")
            Rewriter.replace_value_with_new_type(value, tensor(element_of(value), shape))
        self.refresh_signature()

    def refresh_signature(self) -> None:
        """Make the function's type agree with its body."""
        self.main.update_function_type()

    def clone(self) -> Model:
        """Copy the graph; constants stay shared, as they are views."""
        return Model(self.module.clone())

    def verify(self) -> None:
        """Check every op.

        Raises:
            CompilerUsageError: with xDSL's message, which shows the op.
        """
        try:
            self.module.verify()
        except VerifyException as error:
            raise CompilerUsageError(f"the graph is not valid: {error}") from None

    def text(self) -> str:
        """The model as text; ``parse`` reads it back."""
        return str(self.module) + "\n"

    @staticmethod
    def parse(text: str, name: str = "<text>") -> Model:
        """Read a model from text.

        Raises:
            CompilerUsageError: the text is no model; the message points at the place.
        """
        try:
            return Model(Parser(context(), text, name).parse_module())
        except (ParseError, VerifyException) as error:
            raise CompilerUsageError(str(error)) from None


def context() -> Context:
    """Make an xDSL context with all dialects of this compiler."""
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
