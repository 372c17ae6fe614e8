"""Protocols of compilers and devices: the required and optional interfaces of a custom device.

A device compiles static graphs to programs, loads them, allocates the memory that their inputs and
outputs are bound to, and runs them. To add one:

1. Write a class that satisfies ``Device``, with loaded models ``LoadedModel`` and ``Program``.
2. Provide a factory, ``factory(compiler, platform, contexts)`` (``DeviceFactory``), and register it
   in the entry-point group ``npuw_layer.devices``. NPUW_DEVICES selects it by that name. Models
   with NPU_USE_NPUW=NO, remote tensors and the properties of a device use the one named ``NPU``.
3. Add optional abilities as methods: each is a Protocol below. A device without an ability is used
   in another way, or an error names the missing ability.
4. Call ``check_device(lambda: factory(compiler, "4000", Contexts()))`` of
   ``npuw_layer.testing.check_device``; a device that shares memory: ``check_sharing``, too.

While you write it, ``Core(device=…)`` takes it without an entry point. The smallest example is
``npuw_layer.backends.interpreter``.

General obligations: errors are RuntimeErrors with a message (``npuw_layer.errors`` has some);
program bytes come from files and are untrusted; several threads may call methods of a device at
once, but those of a ``Program`` one at a time.

A compiler satisfies ``Compiler``; its factory takes no arguments, and its entry-point group is
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

# --- Names shared by compilers and devices ------------------------------------------------------

READ_PREFIX = "vpux_ie_read_value_"
"""Prefix of the program input that holds a variable's old value."""

ASSIGN_PREFIX = "vpux_ie_assign_"
"""Prefix of the program output that receives a variable's new value."""

SUBMODEL = "NPUW_SUBMODEL"
"""Key of a compiler's configuration: the graph's name, by which a device may decide."""

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
"""OpenVINO's read-only properties that ``ReportsFacts.fact`` returns; sizes are in bytes."""


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
        """A text that changes whenever a graph may compile differently; part of cache keys."""
        ...

    def compile(self, model: Model, config: Mapping[str, str]) -> bytes:
        """Compile a graph whose inputs and variables have static shapes.

        The graph may be one of ``foldings``.

        Args:
            model: consumed: the compiler may rewrite it.
            config: INFERENCE_PRECISION_HINT, NPU_PLATFORM, NPU_TILES,
                DYNAMIC_QUANTIZATION_GROUP_SIZE, and ENABLE_WEIGHTLESS: with YES, weights may be
                inputs, named as ``compiler_layer.weights`` defines; STATE_IN_PLACE: with YES, a
                variable's input and output may be bound to the same memory; NPUW_MOE_HINT: with
                DEVICE_ROUTED, the program itself reads only the weights of chosen experts.

        Raises:
            NotFolded: the graph is a folded one and does not stand for the whole model.
            RuntimeError: the graph is not supported or does not fit; the message has a remedy.
        """
        ...

    def foldings(self, model: Model) -> Iterator[Model]:
        """Yield graphs that may be split and compiled in place of a stateful one.

        A compiler that compiles equal layers once yields graphs with fewer layers, the smallest
        first, and the model itself last; other compilers yield only the model.
        """
        ...


@runtime_checkable
class CompilesFunctions(Protocol):
    """Ability of a compiler or device: one program for parts that differ only in their weights."""

    def compile_function(self, model: Model, config: Mapping[str, str]) -> CompiledFunction:
        """Compile a part that is called several times.

        Args:
            model: a static and pure graph, which is consumed; constants that differ among the calls
                have a value for each call.
            config: as for ``Compiler.compile``.

        Raises:
            RuntimeError: the part is not supported, or does not fit.
        """
        ...


@runtime_checkable
class CompilesParts(Protocol):
    """Ability of a compiler or device: models cut at their repeated block."""

    def compile_parts(self, model: Model, config: Mapping[str, str]) -> CompiledParts:
        """Cut a static graph at its repeated block and compile the parts, without weights.

        Args:
            model: consumed; folded with its first two layers, or not folded.
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
        """Bytes of the memory, u8; the device reads what the host writes to them."""
        ...

    def free(self) -> None:
        """Release the memory; nothing uses it any more."""
        ...


@runtime_checkable
class MayBeHidden(Protocol):
    """Ability of memory: invisibility to the host; ``data`` raises in that case."""

    @property
    def host_visible(self) -> bool:
        """True if the host can access the bytes."""
        ...


@runtime_checkable
class HasAddress(Protocol):
    """Ability of memory: an address on the device."""

    @property
    def address(self) -> int:
        """Address of the first byte on the device."""
        ...


def is_seen(memory: Memory) -> bool:
    """Return whether the host can access the bytes of a memory."""
    return not isinstance(memory, MayBeHidden) or memory.host_visible


class Program(Protocol):
    """A runnable instance of a loaded program, with bindings of its inputs and outputs.

    Only one thread at a time uses it.
    """

    def bind(self, name: str, memory: Memory, offset: int) -> None:
        """Bind an input or output to memory of the same device, at an offset.

        A binding lasts until it is replaced. Several inputs and outputs may share memory.
        """
        ...

    def prepare(self) -> None:
        """Do the one-time work of the first run in advance; all inputs and outputs are bound.

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
    """Optional ability of a program: submission together with a following program."""

    def followed_by(self, other: Program) -> Callable[[], None] | None:
        """Return a function that executes this program and then the other, synchronously.

        Returns:
            The function, which raises the errors of ``Program.run``; None if the other program is
            of another device.
        """
        ...


class LoadedModel(Protocol):
    """A program on a device; data that it only reads (weights) exist once."""

    @property
    def inputs(self) -> Sequence[TensorInfo]:
        """The inputs, variables included."""
        ...

    @property
    def outputs(self) -> Sequence[TensorInfo]:
        """The outputs, variables included."""
        ...

    def create_program(self) -> Program:
        """Create a runnable program with its own bindings."""
        ...


@dataclass(frozen=True, slots=True)
class TaskSpan:
    """Time in which a unit of the device runs one task of a program."""

    engine: str
    """Kind of the unit: "DMA", "DPU" or "SHAVE"."""
    name: str
    """Operation of the model that the task belongs to."""
    begin_ns: int
    """Begin, counted from the start of the run."""
    end_ns: int


@runtime_checkable
class ShowsTimeline(Protocol):
    """Ability of a loaded model: times of its tasks, equal for all runs because they are static."""

    def timeline(self) -> Sequence[TaskSpan]:
        """Return the tasks of a run that has the device to itself, in the order of their begin.

        Raises:
            DeviceError: the program does not record the operations of its tasks.
        """
        ...


@runtime_checkable
class MovesOn(Protocol):
    """Ability of a loaded model: fallback to another device."""

    @property
    def refusal(self) -> str:
        """Reason why the intended device did not load the program; empty if it did."""
        ...


# --- Device ------------------------------------------------------------------------------------


class Device(Protocol):
    """A device that compiles, holds and runs programs."""

    @property
    def version(self) -> str:
        """A text that changes whenever programs made for the device may be laid out differently."""
        ...

    def compile(self, model: Model, config: Mapping[str, str]) -> bytes:
        """Compile a static graph to a program, as ``Compiler.compile`` does."""
        ...

    def foldings(self, model: Model) -> Iterator[Model]:
        """Yield graphs that stand for a stateful one, as ``Compiler.foldings`` does."""
        ...

    def load(self, program: bytes | memoryview) -> LoadedModel:
        """Load a result of ``compile``.

        Raises:
            RuntimeError: the bytes are not a program for this device.
        """
        ...

    def map_host(self, data: Array) -> Memory | None:
        """Map bytes of the host for the device to read in place.

        Args:
            data: u8; unchanged while the memory is in use.

        Returns:
            The memory; None if the device cannot map the bytes, e.g. because they are not whole
            pages.
        """
        ...

    def allocate(self, nbytes: int) -> Memory:
        """Allocate zeroed memory, which lasts while it or a program bound to it is referenced.

        Raises:
            RuntimeError: no memory is left.
        """
        ...


class Contexts:
    """Objects that the devices of one Core share, each created on first use.

    The NPU keeps its Level Zero contexts here, so that devices of one Core can access each other's
    memory. A device without common objects ignores this.
    """

    def __init__(self) -> None:
        self._made: dict[Hashable, Any] = {}
        self._lock = threading.Lock()

    def of(self, key: Hashable, make: Callable[[], _A]) -> _A:
        """Return the object of a key, created on first use."""
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
            return cast(_A, self._made[key])


class DeviceFactory(Protocol):
    """The constructor contract: the signature of an entry point of ``npuw_layer.devices``."""

    def __call__(self, compiler: Compiler, platform: str, contexts: Contexts) -> Device:
        """Create a device.

        Args:
            compiler: the compiler of NPUW_COMPILER; a device that compiles by itself ignores it.
            platform: NPU_PLATFORM, e.g. "4000"; devices other than NPUs ignore it.
            contexts: objects shared by all devices of one Core.

        Raises:
            RuntimeError: the device is unavailable; the next one of NPUW_DEVICES takes its place.
        """
        ...


# --- Abilities of devices: compiled programs ---------------------------------------------------


@runtime_checkable
class FindsConstants(Protocol):
    """Ability of a device: location of the program bytes that the device uses in place.

    ``Device.load`` and the blob cache do not read such bytes; only the running program does.
    Programs of a device with this ability name no file by path. Programs of a device without it are
    read completely, and serve only the model at that path; they are exported only by
    ``ExportsPrograms``.
    """

    def constants(self, program: bytes | memoryview) -> Sequence[tuple[int, int]]:
        """Return offset and size of each such span, ascending.

        Args:
            program: a result of ``Device.compile``.
        """
        ...


@runtime_checkable
class ExportsPrograms(Protocol):
    """Ability of a device whose programs name files: export of programs without file names."""

    def exported(self, program: bytes | memoryview) -> bytes:
        """Return the part of a program that is valid on other machines.

        Raises:
            DeviceError: that part does not suffice to run the program; the message names the
                reason.
        """
        ...

    def load_exported(self, program: bytes | memoryview) -> LoadedModel:
        """Load a result of ``exported``; the bytes are untrusted.

        Raises:
            DeviceError: the bytes have another format or name files, or the device rejects them.
        """
        ...


@runtime_checkable
class ReadsModelInputs(Protocol):
    """Ability of a device that runs groups of ops: programs that read further model inputs.

    Such an input is an input of the program under its name in the model, and is bound like any
    other. For example, an attention mask shows which rows are padding, though no op of the group
    uses it.
    """

    def within(self, inputs: Sequence[TensorInfo]) -> Device:
        """Return a device that compiles groups of one model.

        Args:
            inputs: inputs of the model.
        """
        ...


@runtime_checkable
class DiffersByStage(Protocol):
    """Ability of a device: some kinds of stages run on other devices."""

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
            Whether it has an effect; a device made of several may have none with this ability.
        """
        ...


@runtime_checkable
class ProfilesPrograms(Protocol):
    """Ability of a device: programs that report the times of their layers.

    They report after each run to the current listener (``npuw_layer.backends.recording``).
    """

    def profile_programs(self) -> None:
        """Enable reports of programs that are loaded from now on."""
        ...


@runtime_checkable
class ReportsFacts(Protocol):
    """Ability of a device: OpenVINO's read-only properties."""

    def fact(self, name: str) -> Any:
        """Return a property of DEVICE_FACTS."""
        ...


# --- Abilities of devices: memory --------------------------------------------------------------


@runtime_checkable
class UsesMemoryOf(Protocol):
    """Ability of a device made of others: its programs are bound to memory of one of them."""

    @property
    def memory_device(self) -> Device:
        """The device that owns the memory."""
        ...


@runtime_checkable
class TakesAnyMemory(Protocol):
    """Ability of a device that computes on the host: its programs bind memory of any device.

    They read and write the memory's ``data``, so the device can work with one that has its own
    memory.
    """

    @property
    def takes_any_memory(self) -> Literal[True]:
        """True; declares the ability."""
        ...


@runtime_checkable
class SharingDevice(Protocol):
    """Ability of a device: memory that other processes can use."""

    def allocate_shared(self, nbytes: int) -> Memory:
        """Allocate zeroed memory that can be exported.

        Raises:
            RuntimeError: no memory is left.
        """
        ...

    def export(self, memory: Memory) -> int:
        """Return a descriptor of such memory, which the caller must close.

        The descriptor can be passed to another process, and keeps the memory alive while open.
        """
        ...

    def attach(self, descriptor: int, nbytes: int) -> Memory:
        """Map exported memory for reading; the caller keeps the descriptor.

        Raises:
            RuntimeError: the descriptor is not such memory, or has fewer bytes.
        """
        ...


class RemoteMemory(Memory, MayBeHidden, HasAddress, Protocol):
    """Memory of a remote tensor."""

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        ...

    @property
    def writable(self) -> bool:
        """True if the device may write to the memory."""
        ...

    @property
    def alive(self) -> bool:
        """True until the memory is freed."""
        ...

    def check(self) -> None:
        """Check that the file that the memory is mapped from, if any, still has all bytes.

        Raises:
            NpuwFault: the file was truncated.
        """
        ...


@runtime_checkable
class ImportsMemory(Protocol):
    """Ability of a device: memory that callers provide and own, as remote tensors do.

    Static models keep their inputs, outputs and variables in such memory. ``free`` releases it,
    except memory from ``find_memory``, which belongs to its owner.
    """

    @property
    def memory_space(self) -> object:
        """Identity of the memory: devices with the same object bind each other's memory."""
        ...

    def allocate_remote(self, nbytes: int) -> RemoteMemory:
        """Allocate zeroed memory that host and device can access.

        Raises:
            DeviceError: no memory is left.
        """
        ...

    def find_memory(self, handle: object) -> tuple[RemoteMemory, int]:
        """Find memory that was allocated in this memory space, and the offset of the handle in it.

        Args:
            handle: an object of the device's runtime, or an address.

        Raises:
            RemoteError: the handle is not such memory.
        """
        ...

    def import_descriptor(self, descriptor: int, nbytes: int, read_only: bool) -> RemoteMemory:
        """Map memory of another context or process; the caller keeps the descriptor.

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
            target: destination memory.
            at: offset in the destination.
            source: source memory.
            begin: offset in the source.
            nbytes: number of bytes.

        Raises:
            DeviceError: the device failed.
        """
        ...


# --- Abilities of devices: weight offload ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WeightCopy:
    """Bytes to copy from the host's memory to the device's."""

    target: Memory
    target_offset: int
    source: Memory
    source_offset: int
    nbytes: int


class CopyProgram(Protocol):
    """Recorded copies, which can run repeatedly."""

    def start(self) -> None:
        """Start the copies and return immediately; transfers run in the order of their start.

        Raises:
            DeviceError: the device rejects them.
        """
        ...

    def wait(self) -> None:
        """Wait for the last start to complete.

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
class OffloadingDevice(Device, CompilesParts, Protocol):
    """Ability of a device: copies in parallel to programs, and predicted costs of both."""

    def record_copies(self, spans: Sequence[WeightCopy]) -> CopyProgram:
        """Record copies to run in parallel to programs.

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
    """A wrapper of devices or loaded models that determines its abilities itself."""

    def ability(self, protocol: type[_A]) -> _A | None:
        """Return the object that satisfies a Protocol: this one, or a wrapped one."""
        ...


def ability(thing: object, protocol: type[_A]) -> _A | None:
    """Return an optional ability of a device or a loaded model, also through wrappers.

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
    """Return the objects that satisfy a Protocol, for all devices or models with the ability."""
    found = (ability(thing, protocol) for thing in things)
    return [each for each in found if each is not None]


def required(device: Device, protocol: type[_A], purpose: str) -> _A:
    """Return an ability that a feature requires.

    Args:
        device: the device.
        protocol: the ability.
        purpose: the feature, as a plural noun.

    Raises:
        OptionError: the device lacks the ability.
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
    """Return the device whose memory programs of a device are ultimately bound to."""
    while isinstance(device, UsesMemoryOf):
        device = device.memory_device
    return device


def device_of(device: Device, kind: StageKind) -> Device:
    """Return the device that runs the static models of one kind; usually one device runs all."""
    staged = ability(device, DiffersByStage)
    return device if staged is None else staged.of_stage(kind)
