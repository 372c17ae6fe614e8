"""Enumerations and structures of the graph extension, with the public header's names.

Source: NPU graph extension 1.18, docs/reference/level_zero.md#graph-structures.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag

from driver_layer.ze.context import Pointer


class ze_graph_format_t(IntEnum):
    """Formats that a graph is created from; devices report a mask of them."""

    ZE_GRAPH_FORMAT_NATIVE = 1
    ZE_GRAPH_FORMAT_NGRAPH_LITE = 2


class ze_graph_flags_t(IntFlag):
    """Flags of a graph's creation."""

    ZE_GRAPH_FLAG_NONE = 0
    ZE_GRAPH_FLAG_DISABLE_CACHING = 1 << 0
    """Neither take the compiled model from the driver's cache nor store it there."""
    ZE_GRAPH_FLAG_ENABLE_PROFILING = 1 << 1
    """Compile the model with ``PERF_COUNT="YES"``."""
    ZE_GRAPH_FLAG_INPUT_GRAPH_PERSISTENT = 1 << 2
    """The caller keeps the input as long as the graph."""
    ZE_GRAPH_FLAG_SECURE_COMPILE = 1 << 3
    """Without effect, as in the public Linux driver."""
    ZE_GRAPH_FLAG_OPTIMIZE_FOR_DYNAMIC_SHAPES = 1 << 4
    """Without effect, as in the public Linux driver."""


class ze_graph_argument_type_t(IntEnum):
    """Sides of a graph: inputs and outputs."""

    ZE_GRAPH_ARGUMENT_TYPE_INPUT = 0
    ZE_GRAPH_ARGUMENT_TYPE_OUTPUT = 1


class ze_graph_argument_layout_t(IntEnum):
    """Layouts of an argument."""

    ZE_GRAPH_ARGUMENT_LAYOUT_ANY = 0
    ZE_GRAPH_ARGUMENT_LAYOUT_NCHW = 1
    ZE_GRAPH_ARGUMENT_LAYOUT_NHWC = 2
    ZE_GRAPH_ARGUMENT_LAYOUT_NCDHW = 3
    ZE_GRAPH_ARGUMENT_LAYOUT_NDHWC = 4
    ZE_GRAPH_ARGUMENT_LAYOUT_C = 0x60
    ZE_GRAPH_ARGUMENT_LAYOUT_CHW = 0x80
    ZE_GRAPH_ARGUMENT_LAYOUT_NC = 0xC1
    ZE_GRAPH_ARGUMENT_LAYOUT_CN = 0xC2


class ze_graph_init_stage_t(IntFlag):
    """Stage at which a graph must be initialised."""

    ZE_GRAPH_STAGE_COMMAND_LIST_INITIALIZE = 1
    ZE_GRAPH_STAGE_INITIALIZE = 2


class ze_graph_properties_flag_t(IntFlag):
    """Origin and abilities of a graph."""

    ZE_GRAPH_PROPERTIES_FLAG_LOADED_FROM_CACHE = 1 << 0
    ZE_GRAPH_PROPERTIES_FLAG_COMPILED = 1 << 1
    ZE_GRAPH_PROPERTIES_FLAG_PRE_COMPILED = 1 << 2
    ZE_GRAPH_PROPERTIES_FLAG_NO_STANDARD_ALLOCATION = 1 << 3
    """The graph does not use the caller's input any more."""
    ZE_GRAPH_PROPERTIES_FLAG_PROFILING_ENABLED = 1 << 4


class ze_graph_memory_query_type_t(IntEnum):
    """Memory that ``pfnQueryContextMemory`` reports."""

    ZE_GRAPH_QUERY_MEMORY_DDR = 1
    ZE_GRAPH_QUERY_MEMORY_DRIVER_CACHE = 2
    ZE_GRAPH_QUERY_MEMORY_PROGRAM_CACHE = 3


class ze_npu_options_type_t(IntEnum):
    """Owner of an option."""

    ZE_NPU_COMPILER_OPTIONS = 1
    ZE_NPU_DRIVER_OPTIONS = 2


@dataclass(frozen=True, slots=True)
class ze_graph_input_hash_t:
    """Hash of a model, which stands for the model in the key of the driver's cache."""

    hash: int


@dataclass(frozen=True, slots=True)
class ze_graph_desc_t:
    """Descriptor of a graph, without flags; else as ``ze_graph_desc_2_t``."""

    format: ze_graph_format_t
    pInput: bytes | memoryview
    pBuildFlags: str | None = None
    pNext: ze_graph_input_hash_t | None = None


@dataclass(frozen=True, slots=True)
class ze_graph_desc_2_t:
    """Descriptor of a graph.

    A native ``pInput`` is used in place and must outlive the graph unchanged, whatever the flags
    are; a model is compiled and no longer used.
    """

    format: ze_graph_format_t
    pInput: bytes | memoryview
    pBuildFlags: str | None = None
    flags: ze_graph_flags_t | int = 0
    pNext: ze_graph_input_hash_t | None = None


@dataclass(frozen=True, slots=True)
class ze_graph_properties_t:
    """Properties of a graph."""

    numGraphArgs: int


@dataclass(frozen=True, slots=True)
class ze_graph_properties_2_t(ze_graph_properties_t):
    """Properties of a graph, and how to initialise it."""

    initStageRequired: ze_graph_init_stage_t


@dataclass(frozen=True, slots=True)
class ze_graph_properties_3_t(ze_graph_properties_2_t):
    """Properties of a graph, how to initialise it, and its origin."""

    flags: ze_graph_properties_flag_t


@dataclass(frozen=True, slots=True)
class ze_graph_argument_property_strides_t:
    """Ability of an argument to have strides other than the dense ones."""

    supportsDynamicStrides: bool = False


@dataclass(frozen=True, slots=True)
class ze_graph_argument_properties_t:
    """Properties of an argument; ``dims`` is padded or cut to five entries.

    Precisions are the codes of ``abi.dtypes.ElementType.precision``. In C, a caller chains
    ``pNext`` to request it; here it is always present.
    """

    name: str
    type: ze_graph_argument_type_t
    dims: tuple[int, ...]
    networkPrecision: int
    networkLayout: ze_graph_argument_layout_t
    devicePrecision: int
    deviceLayout: ze_graph_argument_layout_t
    pNext: ze_graph_argument_property_strides_t


@dataclass(frozen=True, slots=True)
class ze_graph_argument_properties_2_t(ze_graph_argument_properties_t):
    """Properties of an argument, with constants: the device quantizes no arguments."""

    quantReverseScale: float
    quantZeroPoint: int


@dataclass(frozen=True, slots=True)
class ze_graph_argument_properties_3_t(ze_graph_argument_properties_2_t):
    """Properties of an argument with its names; ``dims`` has ``dims_count`` valid entries."""

    dims_count: int
    debug_friendly_name: str
    associated_tensor_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ze_graph_argument_metadata_t:
    """OpenVINO's metadata of an argument; ``shape`` is not limited to five dimensions."""

    type: ze_graph_argument_type_t
    friendly_name: str
    data_type: int
    shape: tuple[int, ...]
    tensor_names: tuple[str, ...]
    input_name: str


@dataclass(frozen=True, slots=True)
class ze_graph_argument_value_strides_t:
    """Strides of an argument in elements, of the innermost dimension first; at most five."""

    userStrides: tuple[int, ...]
    pNext: object = None
    """The next structure of the chain, whose kind depends on the call."""


@dataclass(frozen=True, slots=True)
class ze_graph_argument_value_tensor_t:
    """Location of an argument."""

    pTensor: Pointer | None
    pNext: ze_graph_argument_value_tensor_t | ze_graph_argument_value_strides_t | None = None


@dataclass(frozen=True, slots=True)
class ze_graph_compiler_version_info_t:
    """Version of a compiler."""

    major: int
    minor: int


@dataclass(frozen=True, slots=True)
class ze_graph_version_info_t:
    """A version of three numbers."""

    major: int
    minor: int
    patch: int


@dataclass(frozen=True, slots=True)
class ze_device_graph_properties_t:
    """Properties of a device's graph support; without a compiler its version is 0.0."""

    graphExtensionVersion: int
    compilerVersion: ze_graph_compiler_version_info_t
    graphFormatsSupported: ze_graph_format_t | int
    maxOVOpsetVersionSupported: int


@dataclass(frozen=True, slots=True)
class ze_device_graph_properties_2_t(ze_device_graph_properties_t):
    """Properties of a device's graph support, with the versions of blobs."""

    elfVersion: ze_graph_version_info_t
    runtimeVersion: ze_graph_version_info_t


@dataclass(frozen=True, slots=True)
class ze_graph_memory_query_t:
    """Memory of a context, in bytes."""

    total: int
    allocated: int
