"""The seams below npuw: a compiler that makes programs, and a device that runs them.

Implementations are found by name through the entry-point groups ``npuw_layer.compilers`` and
``npuw_layer.devices``; ``npuw_layer.testing`` holds the checks that any of them must pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy.typing as npt

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from npuw_layer.options.stages import StageKind

Array = npt.NDArray[Any]

READ_PREFIX = "vpux_ie_read_value_"
"""Begins the name of the input that a variable's value comes in by."""

ASSIGN_PREFIX = "vpux_ie_assign_"
"""Begins the name of the output that a variable's new value goes out by."""

SUBMODEL = "NPUW_SUBMODEL"
"""In a compiler's configuration: what the graph is called; a device may choose by it."""

STATIC_MODEL = "model"
"""What a model is called that is no language model: it is one static graph."""

EXPERTS = "NPUW_MOE_HINT"
"""In a compiler's configuration: how experts of mixtures run, if not all of them on all tokens."""

DEVICE_ROUTED = "DEVICE_ROUTED"
"""Of EXPERTS: the program itself takes the weights of chosen experts alone."""


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """An input or output of a program: its name, element type by OpenVINO's name, and shape."""

    name: str
    element: str
    shape: tuple[int, ...]


class Compiler(Protocol):
    """Turns a static graph into a program.

    The graph's variables become inputs and outputs named by READ_PREFIX and ASSIGN_PREFIX, in
    addition to its own; their element type follows INFERENCE_PRECISION_HINT.
    """

    @property
    def version(self) -> str:
        """Changes whenever the same graph may give other bytes; part of the cache's key."""
        ...

    def compile(self, model: Model, config: Mapping[str, str]) -> bytes:
        """Compile a graph whose shapes are set on inputs and variables.

        It may come from one of ``foldings``.

        Args:
            model: consumed: the compiler may rewrite it.
            config: INFERENCE_PRECISION_HINT, NPU_PLATFORM, NPU_TILES,
                DYNAMIC_QUANTIZATION_GROUP_SIZE, and ENABLE_WEIGHTLESS: with YES, weights may be
                inputs, named as ``compiler_layer.weights`` says; STATE_IN_PLACE: with YES, a
                variable's input and output may be bound to the same memory; EXPERTS.

        Raises:
            NotFolded: the graph is a smaller one that turned out not to stand for the whole model.
            RuntimeError: the graph is not supported or does not fit; the message says what to do.
        """
        ...

    def foldings(self, model: Model) -> Iterator[Model]:
        """Give graphs that may be split and compiled in place of a stateful one.

        A compiler that compiles equal layers once gives graphs with fewer layers, the smallest
        first. The last one is the model itself; for others it is the only one.
        """
        ...


class Memory(Protocol):
    """Memory of a device, seen by the host as an array of bytes."""

    @property
    def data(self) -> Array:
        """The bytes, u8; writing to them is what the device reads next."""
        ...

    def free(self) -> None:
        """Give it back; nobody uses it any more."""
        ...


@runtime_checkable
class MayBeHidden(Protocol):
    """Memory that the host may not see: then its ``data`` raises."""

    @property
    def host_visible(self) -> bool:
        """Whether the host sees the bytes."""
        ...


class Program(Protocol):
    """One user of a loaded program, with the memory its inputs and outputs are bound to.

    It is used by one thread at a time.
    """

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        """Let an input or output lie at an offset of a memory of the same device.

        A binding lasts until it is replaced. Several inputs and outputs may share memory.
        """
        ...

    def prepare(self) -> None:
        """Do now what else the first run would do; all inputs and outputs are bound.

        Raises:
            RuntimeError: one is not.
        """
        ...

    def run(self) -> None:
        """Execute once, to the end.

        Raises:
            RuntimeError: an input or output is not bound, or the device failed.
        """
        ...


class LoadedModel(Protocol):
    """A program on a device; what it only reads (weights) is there once."""

    @property
    def inputs(self) -> Sequence[TensorInfo]:
        """The inputs, variables included."""
        ...

    @property
    def outputs(self) -> Sequence[TensorInfo]:
        """The outputs, variables included."""
        ...

    def create_program(self) -> Program:
        """Make something to run, with bindings of its own."""
        ...


@runtime_checkable
class MovesOn(Protocol):
    """A loaded program that another device took over, if the first one refused it."""

    @property
    def refusal(self) -> str:
        """Why the device that it was made for did not load it; empty if it did."""
        ...


class Device(Protocol):
    """Compiles, holds and runs programs.

    One that computes on the host and binds memory of any device, by its ``data``, has an attribute
    ``takes_any_memory`` that is true: then it can be used beside a device with memory of its own.
    """

    @property
    def version(self) -> str:
        """Changes whenever programs made for it may be laid out differently."""
        ...

    def compile(self, model: Model, config: Mapping[str, str]) -> bytes:
        """Make a program of a static graph, as ``Compiler.compile`` does."""
        ...

    def foldings(self, model: Model) -> Iterator[Model]:
        """Give graphs that stand for a stateful one, as ``Compiler.foldings`` does."""
        ...

    def load(self, program: bytes | memoryview) -> LoadedModel:
        """Load what ``compile`` made.

        Raises:
            RuntimeError: the bytes are no program for this device.
        """
        ...

    def map_host(self, data: Array) -> Memory | None:
        """Let the device reach bytes of the host in place, to read them.

        Args:
            data: u8; it stays as it is while the memory is in use.

        Returns:
            None if the device cannot: it reaches whole pages alone, say.
        """
        ...

    def allocate(self, nbytes: int) -> Memory:
        """Take memory, zeroed; it lasts while it is held, or a program that is bound to it.

        Raises:
            RuntimeError: there is none left.
        """
        ...


@runtime_checkable
class UsesMemoryOf(Protocol):
    """A device that is made of others, and whose programs are bound to memory of one of them."""

    @property
    def memory_device(self) -> Device:
        """Whose memory it is."""
        ...


@runtime_checkable
class DiffersByStage(Protocol):
    """A device that has others beside it, for some kinds of a language model's static models."""

    def of_stage(self, kind: StageKind) -> Device:
        """What compiles and runs the models of one kind."""
        ...


@runtime_checkable
class SharingDevice(Protocol):
    """A device whose memory can be handed to other processes; not every device's can."""

    def allocate_shared(self, nbytes: int) -> Memory:
        """Take memory, zeroed, that can be exported.

        Raises:
            RuntimeError: there is none.
        """
        ...

    def export(self, memory: Memory) -> int:
        """Give a descriptor of such memory, which is the caller's to close.

        It can be passed to another process, and holds the memory while it is open.
        """
        ...

    def attach(self, descriptor: int, nbytes: int) -> Memory:
        """Reach exported memory, to read it; the descriptor stays the caller's.

        Raises:
            RuntimeError: the descriptor is not such memory, or has fewer bytes.
        """
        ...


@dataclass(frozen=True, slots=True)
class Urgency:
    """Which programs of a device begin first where several wait, as the options say it."""

    priority: Literal["LOW", "MEDIUM", "HIGH"] = "MEDIUM"
    workload: Literal["DEFAULT", "EFFICIENT"] = "DEFAULT"


@runtime_checkable
class TakesTurns(Protocol):
    """An optional ability of a device: some of its programs are more urgent than others."""

    def set_urgency(self, urgency: Urgency) -> bool:
        """Let programs of what is loaded from now on be so urgent.

        Returns:
            Whether they are; of several devices none may be able to.
        """
        ...


@runtime_checkable
class ProfilesPrograms(Protocol):
    """An optional ability of a device: its programs tell what their layers take.

    They tell it after each run to whoever listens (``execution.profiling.recording``).
    """

    def profile_programs(self) -> None:
        """Let programs of what is loaded from now on tell it."""
        ...


@runtime_checkable
class FindsConstants(Protocol):
    """An optional ability of a device: to tell what of a program it uses in place.

    Such bytes are not read by ``Device.load`` but when the program runs, so whoever keeps programs
    does not read them either. Programs of a device with this ability name no file by its path. Of
    one without it all is read, for the model at that path alone, and nothing is exported but what
    ``ExportsPrograms`` gives.
    """

    def constants(self, program: bytes | memoryview) -> Sequence[tuple[int, int]]:
        """Give offset and size of what is used in place, ascending.

        Args:
            program: what ``Device.compile`` made.
        """
        ...


@runtime_checkable
class ExportsPrograms(Protocol):
    """An optional ability of a device whose programs name files: to give some that do not."""

    def exported(self, program: bytes | memoryview) -> bytes:
        """Give what of a program means the same on other machines.

        Raises:
            DeviceError: that is not enough to run it; says why.
        """
        ...

    def load_exported(self, program: bytes | memoryview) -> LoadedModel:
        """Load what ``exported`` gave, which may come from anywhere and is not believed.

        Raises:
            DeviceError: it is something else, or names files, or the device refuses it.
        """
        ...
