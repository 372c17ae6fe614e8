"""Passes of the compiler in order; each pass is a file of ``compiler_layer.passes``.

``compiler_layer.compile`` continues from the lowered model to a blob.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr
from xdsl.passes import ModulePass

from compiler_layer.errors import CompilerUsageError, UnsupportedModel
from compiler_layer.model import NO_PORTS, Model, PortSelection, context
from compiler_layer.passes.adjust_precision import AdjustPrecision
from compiler_layer.passes.check_supported import CheckSupported
from compiler_layer.passes.decompose_gqa import DecomposeGQA
from compiler_layer.passes.decompose_group_norm import DecomposeGroupNorm
from compiler_layer.passes.decompose_pooling import DecomposePooling
from compiler_layer.passes.dense_experts import DenseExperts
from compiler_layer.passes.fold_blocks import FoldBlocks
from compiler_layer.passes.fold_constants import FoldConstants
from compiler_layer.passes.form_kernels import FormKernels
from compiler_layer.passes.fuse_dequantize import FuseDequantize
from compiler_layer.passes.fuse_fake_quantize import FuseFakeQuantize
from compiler_layer.passes.fuse_kernels import FuseKernels
from compiler_layer.passes.fuse_rms import FuseRMS
from compiler_layer.passes.fuse_rope import FuseRoPE
from compiler_layer.passes.fuse_sdpa import FuseSDPA
from compiler_layer.passes.lift_state import LiftState
from compiler_layer.passes.lower_attention import LowerAttention
from compiler_layer.passes.lower_concat import LowerConcat
from compiler_layer.passes.lower_convolution import LowerConvolution
from compiler_layer.passes.lower_gather import LowerGather
from compiler_layer.passes.lower_group_convolution import LowerGroupConvolution
from compiler_layer.passes.lower_interpolate import LowerInterpolate
from compiler_layer.passes.lower_matmul import LowerMatMul
from compiler_layer.passes.lower_reduction import LowerReduction
from compiler_layer.passes.lower_scatter import LowerScatter
from compiler_layer.passes.lower_softmax import LowerSoftmax
from compiler_layer.passes.lower_topk import LowerTopK
from compiler_layer.passes.move_row_scales import MoveRowScales
from compiler_layer.passes.narrow_doubles import NarrowDoubles
from compiler_layer.passes.quantize_activations import QuantizeActivations
from compiler_layer.passes.remove_dead_code import RemoveDeadCode
from compiler_layer.passes.route_experts import RouteExperts
from compiler_layer.passes.separate_weights import SeparateWeights, WeightName, place_in_file
from compiler_layer.passes.simplify import Simplify
from compiler_layer.passes.sort_ops import SortOps
from compiler_layer.passes.specialize_shapes import SpecializeShapes
from compiler_layer.passes.split_experts import SplitExperts
from compiler_layer.passes.tile import Tile
from compiler_layer.passes.to_opset import ToOpset
from compiler_layer.passes.unsqueeze_attention import UnsqueezeAttention
from compiler_layer.passes.widen_nibbles import WidenNibbles
from driver_layer.abi.platforms import DEFAULT_PLATFORM, Platform
from driver_layer.support.progress import report

Observer = Callable[[str, Model], None]
"""Callback after each pass, with the pass's name and the model."""

_LOWERING = "lowering the graph"


@dataclass(frozen=True, slots=True)
class Options:
    """Inputs of a compilation besides the model.

    The corresponding OpenVINO options are INFERENCE_PRECISION_HINT, NPU_PLATFORM, NPU_TILES,
    DYNAMIC_QUANTIZATION_GROUP_SIZE (UINT64_MAX for integer activations), ENABLE_WEIGHTLESS,
    NPUW_FOLD, PERF_COUNT and NPU_ENABLE_STRIDES_FOR.
    """

    precision: str = "f16"
    """f32, f16 or bf16."""
    platform: str | Platform = DEFAULT_PLATFORM
    """3720, 4000 or 5010; or the path of a platform file (.toml); or a platform itself."""
    tiles: int = 0
    """NCE tiles to use; 0: the compiler chooses."""
    integer_activations: bool = False
    """True to compute matmuls with weights in integers, with one scale per token; the weights must
    have 8 bits."""
    weightless: bool = False
    """True to make weights inputs, which all blobs share, instead of storing them in the blob."""
    name_weight: WeightName = place_in_file
    """Names of the inputs that a weightless blob has for weights."""
    shapes: str = ""
    """Shapes of inputs and variables that are set first, as ``name=1x128,…``."""
    verify_each: bool = False
    """Verify the graph after each pass."""
    fold: bool = True
    """True to compile repeated layers once (NPUW_FOLD)."""
    device_routed: bool = False
    """True if the device fetches the weights of the chosen experts only (DEVICE_ROUTED)."""
    state_in_place: bool = False
    """True if a variable's input and output may share memory at run time. A model with variables
    is not folded then."""
    profiling: bool = True
    """True to write the map of tasks to operations, by which inferences are profiled."""
    strided: PortSelection = NO_PORTS
    """Arguments whose strides the caller may choose at run time. Such a model is not folded."""


def graph_passes(options: Options) -> Sequence[ModulePass]:
    """Return the passes that keep the model's own ops, and make it static, simple and pure."""
    return (
        FuseDequantize(),
        SpecializeShapes(options.shapes),
        DecomposeGQA(),
        DecomposeGroupNorm(),
        DecomposePooling(),
        UnsqueezeAttention(),
        DenseExperts(),
        FoldConstants(),
        Simplify(),
        SortOps(),
        NarrowDoubles(),
        FuseRMS(),
        FuseRoPE(),
        FuseSDPA(),
        MoveRowScales(),
        AdjustPrecision(options.precision),
        LiftState(),
        *((RouteExperts(),) if options.device_routed else ()),
    )


def opset_passes(options: Options) -> Sequence[ModulePass]:
    """Return the passes for a graph that OpenVINO runs: all ops are in OpenVINO's opsets."""
    forming = (FuseRMS, FuseRoPE, FuseSDPA)
    kept = [each for each in graph_passes(options) if not isinstance(each, forming)]
    return (*kept, ToOpset(), *_last_passes(options))


def hardware_passes(options: Options) -> Sequence[ModulePass]:
    """Return the passes that lower each op to the hardware."""
    return (
        CheckSupported(),
        SplitExperts(),
        LowerConvolution(),
        LowerGroupConvolution(),
        LowerMatMul(),
        FuseFakeQuantize(),
        *((QuantizeActivations(),) if options.integer_activations else ()),
        WidenNibbles(),
        LowerAttention(),
        LowerInterpolate(),
        LowerGather(),
        LowerScatter(),
        LowerTopK(),
        LowerReduction(),
        LowerSoftmax(),
        LowerConcat(),
        FormKernels(),
        FuseKernels(),
        Tile(options.platform, options.tiles),
    )


def passes(options: Options) -> Sequence[ModulePass]:
    """Return all passes in order."""
    first = (FoldBlocks(),) if options.fold else ()
    return (*first, *graph_passes(options), *hardware_passes(options), *_last_passes(options))


def _last_passes(options: Options) -> Sequence[ModulePass]:
    return (SeparateWeights(options.name_weight),) if options.weightless else ()


AFTER = "npuc.after"
"""Attribute with the pass after which a module was printed; compilation continues from there."""


def remaining(model: Model, wanted: Sequence[ModulePass]) -> Sequence[ModulePass]:
    """Return the passes that have not run on a model, according to its ``AFTER`` attribute.

    Raises:
        CompilerUsageError: the attribute names a pass that is not in ``wanted``.
    """
    after = model.module.attributes.get(AFTER)
    if not isinstance(after, StringAttr):
        return wanted
    names = [each.name for each in wanted]
    if after.data == FoldBlocks.name:
        return wanted[1:] if FoldBlocks.name in names else wanted
    if after.data not in names:
        raise CompilerUsageError(f"printed after {after.data!r}, not a pass with these options")
    return wanted[names.index(after.data) + 1 :]


def available_passes() -> dict[str, type[ModulePass]]:
    """Return all passes by name."""
    everything = Options(integer_activations=True, weightless=True, device_routed=True)
    everyone = (*(type(each) for each in passes(everything)), RemoveDeadCode, ToOpset)
    return {each.name: each for each in everyone}


def lower_graph(model: Model, options: Options) -> None:
    """Make a model static and pure, in place; its ops stay OpenVINO's.

    Raises:
        CompilerError: see each pass.
    """
    run_passes(model, graph_passes(options), options)


def lower(model: Model, options: Options, observer: Observer | None = None) -> None:
    """Run all passes on a model, in place.

    Raises:
        CompilerError: see each pass.
    """
    run_passes(model, passes(options), options, observer)


def in_opset(model: Model) -> Model:
    """Return a copy with all ops in OpenVINO's opsets, as far as the ops have an equivalent.

    Raises:
        CompilerError: see ``specialize-shapes``: repeating K and V needs known shapes.
    """
    copy = model.clone()
    run_passes(copy, (SpecializeShapes(), ToOpset()), Options())
    return copy


def run_passes(
    model: Model,
    wanted: Sequence[ModulePass],
    options: Options,
    observer: Observer | None = None,
) -> None:
    """Run passes on a model, in place."""
    ctx = context()
    for done, each in enumerate(wanted):
        report(_LOWERING, done, len(wanted), "passes")
        try:
            each.apply(ctx, model.module)
        except RecursionError:
            raise UnsupportedModel(f"{each.name}: the ops are nested too deeply") from None
        if options.verify_each:
            model.verify()
        if observer is not None:
            observer(each.name, model)
    report(_LOWERING, len(wanted), len(wanted), "passes")
