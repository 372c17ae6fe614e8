"""Protocols of compilers and devices: all that a device of one's own must, and may, implement.

A device compiles static graphs to programs, loads them, allocates the memory that their inputs and
outputs are bound to, and runs them. To bring one:

1. Write a class that satisfies ``Device``, and its loaded models ``LoadedModel`` and ``Program``.
2. Let a call ``factory(compiler, platform, contexts)`` make it (``DeviceFactory``), and name that
   factory in the entry-point group ``npuw_layer.devices``. NPUW_DEVICES chooses it by that name.
3. Add optional abilities as methods: each is a Protocol below. A device without one is used in
   another way, or an error names the ability that is missing.
4. Call ``npuw_layer.testing.check_device`` on it.

Obligations that hold throughout: errors are RuntimeErrors with a message (``npuw_layer.errors`` has
some); bytes given as programs come from files and may be anything; several threads may call methods
of a device at once, one at a time those of a ``Program``.

A compiler satisfies ``Compiler`` and is made by a call without arguments; its entry-point group is
``npuw_layer.compilers``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, cast, runtime_checkable

import numpy.typing as npt

from npuw_layer.errors import OptionError

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from compiler_layer.partition.compiled import CompiledFunction, CompiledParts
    from npuw_layer.options.stages import StageKind

Array = npt.NDArray[Any]
_A = TypeVar("_A")

# --- Names that compilers and devices meet -----------------------------------------------------

READ_PREFIX = "vpux_ie_read_value_"
"""Prefix of the program input that holds a variable's old value."""

ASSIGN_PREFIX = "vpux_ie_assign_"
"""Prefix of the program output that receives a variable's new value."""

SUBMODEL = "NPUW_SUBMODEL"
"""Key of a compiler's configuration: the graph's name, by which a device may choose."""

STATIC_MODEL = "model"
"""Name of a model that is one static graph."""

DEVICE_FACTS = (
    "AVAILABLE_DEVICES",
    "FULL_DEVICE_NAME",
    "DEVICE_ARCHITECTURE",
    "DEVICE_TYPE",
    "DEVICE_UUID",
    "EXECUTION_DEVICES",
    "OPTIMIZATION_CAPABILITIES",
    "OPTIMAL_NUMBER_OF_INFER_REQUESTS",
    "NPU_DRIVER_VERSION",
    "NPU_MAX_TILES",
    "NPU_DEVICE_TOTAL_MEM_SIZE",
    "NPU_DEVICE_ALLOC_MEM_SIZE",
)
"""OpenVINO's read-only properties that ``TellsFacts.fact`` is asked for; sizes are in bytes."""


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """An input or output of a program: name, element type by OpenVINO's name, and shape."""

    name: str
    element: str
    shape: tuple[int, ...]


# --- Compiler ----------------------------------------------------------------------------------


class Compiler(Protocol):
    """A compiler of static graphs.

    The graph's variables become inputs and outputs named by READ_PREFIX and ASSIGN_PREFIX, in
    addition to the graph's own; their element type follows INFERENCE_PRECISION_HINT.
    """

    @property
    def version(self) -> str:
        """A text that changes whenever the same graph may give other bytes; part of cache keys."""
        ...

    def compile(self, model: Model, config: Mapping[str, str]) -> bytes:
        """Compile a graph whose inputs and variables have static shapes.

        The graph may be one of ``foldings``.

        Args:
            model: consumed: the compiler may rewrite it.
            config: INFERENCE_PRECISION_HINT, NPU_PLATFORM, NPU_TILES,
                DYNAMIC_QUANTIZATION_GROUP_SIZE, and ENABLE_WEIGHTLESS: with YES, weights may be
                inputs, named as ``compiler_layer.weights`` says; STATE_IN_PLACE: with YES, a
                variable's input and output may be bound to the same memory; NPUW_MOE_HINT: with
                DEVICE_ROUTED, the program itself reads the weights of chosen experts alone.

        Raises:
            NotFolded: the graph is a folded one and does not stand for the whole model.
            RuntimeError: the graph is not supported or does not fit; the message has a remedy.
        """
        ...

    def foldings(self, model: Model) -> Iterator[Model]:
        """Yield graphs that may be split and compiled in place of a stateful one.

        A compiler that compiles equal layers once yields graphs with fewer layers, the smallest
        first. The last one is the model itself; other compilers yield the model alone.
        """
        ...


@runtime_checkable
class CompilesFunctions(Protocol):
    """Ability of a compiler or device: one program for parts that differ in their weights alone."""

    def compile_function(self, model: Model, config: Mapping[str, str]) -> CompiledFunction:
        """Compile a part that is called several times.

        Args:
            model: static and pure; constants that differ among the calls have a value for each;
                consumed.
            config: as for ``Compiler.compile``.

        Raises:
            RuntimeError: the part is not supported, or does not fit.
        """
        ...


@runtime_checkable
class CompilesPieces(Protocol):
    """Ability of a compiler or device: models cut at their repeated block."""

    def compile_parts(self, model: Model, config: Mapping[str, str]) -> CompiledParts:
        """Cut a static graph at its repeated block and compile the pieces, without weights.

        Args:
            model: consumed; folded with its first two layers, or not at all.
            config: as for ``Compiler.compile``.

        Raises:
            NotFolded: the graph repeats no block, or not often enough.
            RuntimeError: the graph is not supported, or does not fit.
        """
        ...


# --- Memory and programs -----------------------------------------------------------------------


class Memory(Protocol):
    """Memory of a device, seen by the host as an array of bytes."""

    @property
    def data(self) -> Array:
        """The bytes, u8; the device reads what was written to them."""
        ...

    def free(self) -> None:
        """Release the memory; nothing uses it any more."""
        ...


@runtime_checkable
class MayBeHidden(Protocol):
    """Ability of memory: the host may not see it; its ``data`` raises in that case."""

    @property
    def host_visible(self) -> bool:
        """Whether the host sees the bytes."""
        ...


def is_seen(memory: Memory) -> bool:
    """Whether the host sees the bytes of a memory."""
    return not isinstance(memory, MayBeHidden) or memory.host_visible


class Program(Protocol):
    """One user of a loaded program, with the memory that inputs and outputs are bound to.

    One thread at a time uses it.
    """

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        """Let an input or output lie at an offset of a memory of the same device.

        A binding lasts until it is replaced. Several inputs and outputs may share memory.
        """
        ...

    def prepare(self) -> None:
        """Do in advance what the first run would do; all inputs and outputs are bound.

        Raises:
            RuntimeError: an input or output is not bound.
        """
        ...

    def run(self) -> None:
        """Execute once, to the end.

        Raises:
            RuntimeError: an input or output is not bound, or the device failed.
        """
        ...


@runtime_checkable
class RunsTogether(Protocol):
    """An optional ability of a program: to be submitted together with another one behind it."""

    def followed_by(self, other: Program) -> Callable[[], None] | None:
        """Return what executes this program and then the other, to the end.

        Returns:
            None if the other is of another device. What is called raises what ``Program.run`` does.
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
        """Create a runnable program with bindings of its own."""
        ...


@runtime_checkable
class MovesOn(Protocol):
    """Ability of a loaded model: another device may have taken it over."""

    @property
    def refusal(self) -> str:
        """Why the device that the program was made for did not load it; empty if it did."""
        ...


# --- Device ------------------------------------------------------------------------------------


class Device(Protocol):
    """A device that compiles, holds and runs programs."""

    @property
    def version(self) -> str:
        """A text that changes whenever programs made for the device may be laid out differently."""
        ...

    def compile(self, model: Model, config: Mapping[str, str]) -> bytes:
        """Make a program of a static graph, as ``Compiler.compile`` does."""
        ...

    def foldings(self, model: Model) -> Iterator[Model]:
        """Yield graphs that stand for a stateful one, as ``Compiler.foldings`` does."""
        ...

    def load(self, program: bytes | memoryview) -> LoadedModel:
        """Load what ``compile`` made.

        Raises:
            RuntimeError: the bytes are no program for this device.
        """
        ...

    def map_host(self, data: Array) -> Memory | None:
        """Let the device read bytes of the host in place.

        Args:
            data: u8; it stays as it is while the memory is in use.

        Returns:
            None if the device cannot: it maps whole pages alone, for example.
        """
        ...

    def allocate(self, nbytes: int) -> Memory:
        """Allocate zeroed memory; it lasts while it is held, or a program that is bound to it.

        Raises:
            RuntimeError: no memory is left.
        """
        ...


class Contexts:
    """Objects that the devices of one Core have in common, each made when it is first needed.

    The NPU keeps its Level Zero contexts here, so that devices of one Core reach each other's
    memory. A device that has nothing in common with others ignores it.
    """

    def __init__(self) -> None:
        self._made: dict[Hashable, Any] = {}
        self._lock = threading.Lock()

    def of(self, key: Hashable, make: Callable[[], _A]) -> _A:
        """Return the object of a key."""
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
            return cast(_A, self._made[key])


class DeviceFactory(Protocol):
    """The constructor contract: how an entry point of ``npuw_layer.devices`` is called."""

    def __call__(self, compiler: Compiler, platform: str, contexts: Contexts) -> Device:
        """Make a device.

        Args:
            compiler: the one that NPUW_COMPILER names; a device that compiles by itself ignores it.
            platform: NPU_PLATFORM, e.g. "4000"; a device that is no NPU ignores it.
            contexts: shared by all devices of one Core.

        Raises:
            RuntimeError: the device is not there; the next one of NPUW_DEVICES takes its place.
        """
        ...


# --- Abilities of devices: compiled programs ---------------------------------------------------


@runtime_checkable
class FindsConstants(Protocol):
    """Ability of a device: finding the bytes of a program that it uses in place.

    ``Device.load`` does not read such bytes, but the running program does; the blob cache does not
    read them either. Programs of a device with this ability name no file by its path. Programs of
    a device without it are read whole and serve the model at that path alone; none is exported but
    by ``ExportsPrograms``.
    """

    def constants(self, program: bytes | memoryview) -> Sequence[tuple[int, int]]:
        """Return offset and size of each such span, ascending.

        Args:
            program: what ``Device.compile`` made.
        """
        ...


@runtime_checkable
class ExportsPrograms(Protocol):
    """Ability of a device whose programs name files: exporting programs that name none."""

    def exported(self, program: bytes | memoryview) -> bytes:
        """Return the part of a program that means the same on other machines.

        Raises:
            DeviceError: that part does not suffice to run it; the message says why.
        """
        ...

    def load_exported(self, program: bytes | memoryview) -> LoadedModel:
        """Load what ``exported`` returned; the bytes may come from anywhere and are not trusted.

        Raises:
            DeviceError: the bytes are something else, or name files, or the device refuses them.
        """
        ...


@runtime_checkable
class ReadsModelInputs(Protocol):
    """Ability of a device that runs groups of ops: programs that read more of the model's inputs.

    Such an input is one of the program's inputs under the model's name for it, and is bound as any
    other. An attention mask, for example, tells which rows are padding, though no op of the group
    uses it.
    """

    def within(self, inputs: Sequence[TensorInfo]) -> Device:
        """Return a device that compiles groups of one model.

        Args:
            inputs: those of the model.
        """
        ...


@runtime_checkable
class DiffersByStage(Protocol):
    """Ability of a device: other devices beside it run some kinds of a language model's stages."""

    def of_stage(self, kind: StageKind) -> Device:
        """Return the device that compiles and runs the models of one kind."""
        ...


# --- Abilities of devices: scheduling and reports ----------------------------------------------


@dataclass(frozen=True, slots=True)
class Urgency:
    """Order among waiting programs of a device: MODEL_PRIORITY and WORKLOAD_TYPE."""

    priority: Literal["LOW", "MEDIUM", "HIGH"] = "MEDIUM"
    workload: Literal["DEFAULT", "EFFICIENT"] = "DEFAULT"


@runtime_checkable
class TakesTurns(Protocol):
    """Ability of a device: programs of different urgency."""

    def set_urgency(self, urgency: Urgency) -> bool:
        """Set the urgency of programs that are loaded from now on.

        Returns:
            Whether they have it; a device made of several may have none that can.
        """
        ...


@runtime_checkable
class ProfilesPrograms(Protocol):
    """Ability of a device: programs that report the times of their layers.

    They report after each run to the current listener (``npuw_layer.backends.recording``).
    """

    def profile_programs(self) -> None:
        """Let programs that are loaded from now on report."""
        ...


@runtime_checkable
class TellsFacts(Protocol):
    """Ability of a device: OpenVINO's read-only properties of it."""

    def fact(self, name: str) -> Any:
        """Return a property of DEVICE_FACTS."""
        ...


# --- Abilities of devices: memory --------------------------------------------------------------


@runtime_checkable
class UsesMemoryOf(Protocol):
    """Ability of a device made of others: its programs are bound to memory of one of them."""

    @property
    def memory_device(self) -> Device:
        """The device whose memory it is."""
        ...


@runtime_checkable
class TakesAnyMemory(Protocol):
    """Ability of a device that computes on the host: its programs bind memory of any device.

    They read and write the memory's ``data``. So the device can be used beside one with memory of
    its own.
    """

    @property
    def takes_any_memory(self) -> Literal[True]:
        """Declares the ability."""
        ...


@runtime_checkable
class SharingDevice(Protocol):
    """Ability of a device: memory that is handed to other processes."""

    def allocate_shared(self, nbytes: int) -> Memory:
        """Allocate zeroed memory that can be exported.

        Raises:
            RuntimeError: no memory is left.
        """
        ...

    def export(self, memory: Memory) -> int:
        """Return a descriptor of such memory, which the caller closes.

        The descriptor can be passed to another process, and holds the memory while it is open.
        """
        ...

    def attach(self, descriptor: int, nbytes: int) -> Memory:
        """Map exported memory for reading; the descriptor stays the caller's.

        Raises:
            RuntimeError: the descriptor is not such memory, or has fewer bytes.
        """
        ...


class RemoteMemory(Memory, MayBeHidden, Protocol):
    """Memory of a remote tensor."""

    @property
    def nbytes(self) -> int:
        """Its size."""
        ...

    @property
    def address(self) -> int:
        """Its address on the device."""
        ...

    @property
    def writable(self) -> bool:
        """Whether the device may write to it."""
        ...

    @property
    def alive(self) -> bool:
        """Whether nobody has freed it."""
        ...

    def check(self) -> None:
        """See that the file that it is mapped from, if any, still has all bytes.

        Raises:
            NpuwFault: the file was truncated.
        """
        ...


@runtime_checkable
class ImportsMemory(Protocol):
    """Ability of a device: memory that callers hold and bring, as remote tensors do.

    Static models keep their inputs, outputs and variables in such memory. It is freed by ``free``,
    or, if ``find_memory`` found it, by its owner.
    """

    @property
    def memory_space(self) -> object:
        """Identity of the memory: devices with the same object bind each other's memory."""
        ...

    def allocate_remote(self, nbytes: int) -> RemoteMemory:
        """Allocate zeroed memory that host and device see.

        Raises:
            DeviceError: no memory is left.
        """
        ...

    def find_memory(self, handle: object) -> tuple[RemoteMemory, int]:
        """Find memory that somebody allocated in this memory space, and the offset that is meant.

        Args:
            handle: an object of the device's runtime, or an address.

        Raises:
            RemoteError: the handle is no such memory.
        """
        ...

    def import_descriptor(self, descriptor: int, nbytes: int, read_only: bool) -> RemoteMemory:
        """Map memory of another context or process; the descriptor stays the caller's.

        Raises:
            RemoteError: the descriptor is not such memory, or has fewer bytes.
        """
        ...

    def import_host(self, data: Array, read_only: bool) -> RemoteMemory:
        """Map bytes of the host, which begin at a page.

        Raises:
            DeviceError: the device has no addresses left.
        """
        ...

    def copy(
        self, target: RemoteMemory, at: int, source: RemoteMemory, begin: int, nbytes: int
    ) -> None:
        """Copy bytes within the memory space, and wait.

        Args:
            target: where to.
            at: offset in it.
            source: where from.
            begin: offset in it.
            nbytes: how many.

        Raises:
            DeviceError: the device failed.
        """
        ...


# --- Abilities of devices: weight offload ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes to copy from the host's memory to the device's."""

    target: Memory
    target_offset: int
    source: Memory
    source_offset: int
    nbytes: int


class Transfer(Protocol):
    """Recorded copies, to be made as often as needed."""

    def start(self) -> None:
        """Begin, and return at once; transfers are made in the order in which they begin.

        Raises:
            DeviceError: the device refused.
        """
        ...

    def wait(self) -> None:
        """Wait for the last start.

        Raises:
            DeviceError: a copy failed.
        """
        ...


@dataclass(frozen=True, slots=True)
class Cost:
    """Predicted cost of a program or copy that has the device to itself."""

    ns: float
    ddr_bytes: float
    """Bytes read and written in the device's memory."""


@runtime_checkable
class OffloadingDevice(Device, CompilesPieces, Protocol):
    """Ability of a device: copies beside running programs, and their predicted costs."""

    def record_copies(self, spans: Sequence[Span]) -> Transfer:
        """Record copies to run beside programs.

        Raises:
            DeviceError: a span is not in memory of this device.
        """
        ...

    def predict(self, program: bytes | memoryview) -> Cost:
        """Return the cost of a program on the simulated device."""
        ...

    def predict_copy(self, nbytes: int) -> Cost:
        """Return the cost of a copy from the host's memory on the simulated device."""
        ...

    @property
    def ddr_bytes_per_ns(self) -> float:
        """Bandwidth that programs and copies share."""
        ...


# --- Finding abilities -------------------------------------------------------------------------


@runtime_checkable
class HasAbilities(Protocol):
    """A device or loaded model around others, which decides itself what it can do."""

    def ability(self, protocol: type[_A]) -> _A | None:
        """Return what satisfies a Protocol: this object, or one that it stands around."""
        ...


def ability(thing: object, protocol: type[_A]) -> _A | None:
    """Find an optional ability of a device or a loaded model, through what stands around it.

    Args:
        thing: the device or loaded model.
        protocol: the ability.

    Returns:
        An object that satisfies the Protocol; None without the ability.
    """
    if isinstance(thing, HasAbilities):
        return thing.ability(protocol)
    return thing if isinstance(thing, protocol) else None


def abilities(things: Iterable[object], protocol: type[_A]) -> list[_A]:
    """Return what satisfies a Protocol of those devices or models that have the ability."""
    found = (ability(thing, protocol) for thing in things)
    return [each for each in found if each is not None]


def required(device: Device, protocol: type[_A], purpose: str) -> _A:
    """Find an ability without which something cannot be had.

    Args:
        device: the device.
        protocol: the ability.
        purpose: plural noun: what needs it.

    Raises:
        OptionError: the device lacks it.
    """
    found = ability(device, protocol)
    if found is None:
        raise OptionError(
            f"{type(device).__name__}: {purpose} need a device with the ability "
            f"{protocol.__name__}, which it lacks; use the NPU, or add the ability "
            f"({protocol.__module__})"
        )
    return found


def memory_of(device: Device) -> Device:
    """Return the device whose memory programs of a device are bound to in the end."""
    while isinstance(device, UsesMemoryOf):
        device = device.memory_device
    return device


def device_of(device: Device, kind: StageKind) -> Device:
    """Return the device that runs the static models of one kind; mostly one device runs all."""
    staged = ability(device, DiffersByStage)
    return device if staged is None else staged.of_stage(kind)
