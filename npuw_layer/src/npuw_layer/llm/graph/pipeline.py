"""Pipeline of graph preparation: all passes in order, the table of contents of ``llm.graph``.

The passes turn a stateful language model into the static graph of one stage. State other than K and
V is not handled here: each trait of the model inserts its passes before those named here.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace

from xdsl.passes import ModulePass

from compiler_layer.model import Model, context
from npuw_layer.errors import ModelError
from npuw_layer.llm.graph.check_lengths import CheckLengths, Splits
from npuw_layer.llm.graph.check_ports import CheckPorts
from npuw_layer.llm.graph.check_tokens import CheckTokens
from npuw_layer.llm.graph.compare_tokens import CompareTokens
from npuw_layer.llm.graph.count_positions import CountPositions
from npuw_layer.llm.graph.cut_head import CutHead
from npuw_layer.llm.graph.drop_beams import DropBeams
from npuw_layer.llm.graph.head_alone import HeadAlone
from npuw_layer.llm.graph.last_token_head import LastTokenHead
from npuw_layer.llm.graph.rope_cache import CacheRope
from npuw_layer.llm.graph.static_inputs import StaticInputs
from npuw_layer.llm.graph.store_caches import StoreCaches
from npuw_layer.llm.graph.usual_axes import UsualAxes
from npuw_layer.llm.graph.vocabulary import RecordVocabulary
from npuw_layer.llm.graph.window_tables import CompareWindowTables
from npuw_layer.llm.kv.kv_layout import PLAIN, KVLayout
from npuw_layer.llm.plan.ruled_out import check_traits
from npuw_layer.llm.plan.stages import Stage, StageKind, kv_layout, rope_rows
from npuw_layer.llm.trait import ModelNames
from npuw_layer.options import Options
from npuw_layer.tensors.traits import traits


def core_passes(
    stage: Stage, options: Options, splits: Splits | None = None
) -> Sequence[ModulePass]:
    """Return the passes of a stage of any language model.

    Args:
        stage: the static model to make.
        options: axes, head, formats of caches.
        splits: passes for the trial splits of ``check-lengths``; None omits the check.
    """
    tokens, past = stage.tokens, stage.past
    axes = UsualAxes(options.batch_dim, options.seq_len_dim)
    if stage.kind is StageKind.HEAD:
        return (axes, HeadAlone(tokens), RecordVocabulary())
    reads_prompt = stage.kind is StageKind.PREFILL
    return (
        CheckPorts(),
        axes,
        *((CacheRope(rope_rows(stage, options)),) if options.caches_rope else ()),
        *((CheckLengths(tokens, past, splits),) if splits is not None else ()),
        *split_passes(stage, kv_layout(options), options.optimize_fp8),
        *((CutHead(),) if options.cuts_head else ()),
        *((LastTokenHead(tokens, stage.slots),) if reads_prompt and not options.cuts_head else ()),
        RecordVocabulary(),
    )


def split_passes(
    stage: Stage, layout: KVLayout = PLAIN, optimize_fp8: bool = False
) -> Sequence[ModulePass]:
    """Return the core passes that depend on the lengths of a stage."""
    tokens, past, slots = stage.tokens, stage.past, stage.slots
    return (
        CheckTokens(slots),
        CompareTokens(tokens, past, slots),
        CountPositions(tokens, slots),
        CompareWindowTables(tokens, past, slots),
        StoreCaches.of(past, layout, slots, optimize_fp8),
        DropBeams(),
        StaticInputs(tokens, past, slots),
    )


def stage_passes(
    model: Model, stage: Stage, options: Options, check: bool = False
) -> Sequence[ModulePass]:
    """Return all passes of a stage.

    Args:
        model: the stateful graph, whose traits add passes.
        stage: the static model to make.
        options: axes, head, formats of caches.
        check: whether to check that nothing is computed from padded lengths (``check-lengths``).

    Raises:
        ModelError: a trait of the model rules out an option.
    """

    def splits(tokens: int, past: int) -> Sequence[ModulePass]:
        other = replace(stage, tokens=tokens, past=past, slots=1)
        return with_traits(split_passes(other), model, other, options)

    inputs, outputs = ([port.name for port in ports] for ports in (model.inputs, model.outputs))
    check_traits(ModelNames(inputs, [each.name for each in model.variables()], outputs), options)
    core = core_passes(stage, options, splits if check else None)
    return with_traits(core, model, stage, options)


def with_traits(
    core: Iterable[ModulePass], model: Model, stage: Stage, options: Options
) -> Sequence[ModulePass]:
    """Return core passes with those that the traits of a model insert before them.

    Raises:
        ModelError: a trait of the model rules out an option.
    """
    with _shallow():
        placed = [each for trait in traits() for each in trait.passes(model, stage, options)]
    known = tuple(name for each in placed for name in each.inputs)
    found: list[ModulePass] = []
    for each in core:
        found += (one.each for one in placed if one.before == each.name)
        found.append(CheckPorts(known) if isinstance(each, CheckPorts) else each)
    return found


def stage_graph(model: Model, stage: Stage, options: Options, check: bool = False) -> Model:
    """Return the static graph to compile for a stage.

    Args:
        model: the stateful graph, not changed.
        stage: as for ``stage_passes``.
        options: as for ``stage_passes``.
        check: as for ``stage_passes``.

    Raises:
        ModelError: the graph is not a language model with K and V caches, does not support several
            conversations, or computes something from padded lengths.
        OtherAxes: the axes of its caches differ from the options.
        NoHead: options cut off the head, but it cannot be identified.
    """
    graph = model.clone()
    run_passes(graph, stage_passes(model, stage, options, check))
    return graph


def run_passes(graph: Model, passes: Iterable[ModulePass]) -> None:
    """Run passes on a graph, in place.

    Raises:
        ModelError: the graph's ops are nested too deeply, or a pass raises it.
    """
    ctx = context()
    for each in passes:
        with _shallow():
            each.apply(ctx, graph.module)


@contextmanager
def _shallow() -> Generator[None]:
    """Raise a ModelError if ops are nested too deeply for recursion."""
    try:
        yield
    except RecursionError:
        raise ModelError("the graph's ops are nested too deeply") from None
