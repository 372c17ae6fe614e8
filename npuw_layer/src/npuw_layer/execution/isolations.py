"""Which groups of ops run apart from the rest of their model, as options say."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import STATIC_MODEL, Device
from npuw_layer.errors import OptionError
from npuw_layer.execution.host_attention.isolate import attention_isolations
from npuw_layer.options import Options
from npuw_layer.options.stages import KINDS, StageKind

if TYPE_CHECKING:
    from npuw_layer.execution.partition.ports import Isolation, Listener


def in_parts(
    device: Device,
    options: Options,
    without: Callable[[str], Device],
    kinds: Sequence[StageKind] = KINDS,
    static: str = STATIC_MODEL,
    apart: Mapping[str, Isolation] | None = None,
) -> Device:
    """Let a device run models in parts, if there is something to run apart.

    Args:
        device: runs all else.
        options: what was asked for.
        without: gives the devices of NPUW_DEVICES but one.
        kinds: of a language model's static models those that it runs.
        static: the kind of other static models that are cut as options say.
        apart: the parts of these that run apart, in place of what options say.

    Raises:
        OptionError: what is asked for contradicts itself, or a device that is to be avoided is not
            there, or the only one.
    """
    listeners = _listeners(options)
    attention = attention_isolations(device, options, kinds)
    routed = {kind for kind in kinds if options.experts_hint(kind) == "HOST_ROUTED"}
    if not (options.cuts_models or routed or apart or listeners or attention):
        return device
    # Imported here: who runs models whole loads nothing of it.
    from npuw_layer.execution.partition.device import partitioning
    from npuw_layer.execution.partition.rules import rules

    found = rules(device, options, without)
    experts: Mapping[str, Isolation] = _experts(device, options, found) if routed else {}
    isolations: dict[str, Mapping[str, Isolation]] = {
        kind: {**found, **attention.get(kind, {}), **(experts if kind in routed else {})}
        for kind in kinds
    }
    isolations[static] = found if apart is None else apart
    return partitioning(device, isolations, _unfolded(options, isolations), listeners)


def _unfolded(options: Options, isolations: Mapping[str, Mapping[str, Isolation]]) -> set[str]:
    """The tags whose submodels are compiled one by one."""
    if not options.fold_only:
        return {*options.unfolded_tags}
    tags = {"", *(tag for by_tag in isolations.values() for tag in by_tag)}
    return tags - ({*options.fold_only} - {*options.unfolded_tags})


def _listeners(options: Options) -> Sequence[Listener]:
    """Who is told what models are cut into; nobody where layers are brought one by one."""
    found: list[Listener] = []
    if options.weights_offload != "NO":
        return found
    # Imported here: who writes nothing loads nothing of it.
    if options.online_dump_plan:
        from npuw_layer.execution.partition.plan_file import PlanFile

        found.append(PlanFile(Path(options.online_dump_plan)))
    if options.dumps_graphs:
        from npuw_layer.execution.dumps.graphs import GraphDumps

        found.append(GraphDumps(options))
    return found


def _experts(device: Device, options: Options, found: Container[str]) -> Mapping[str, Isolation]:
    """What routes tokens to experts.

    Raises:
        OptionError: layers are submodels already.
    """
    from npuw_layer.execution.experts.device import TAG, RoutedExperts
    from npuw_layer.execution.partition.planned import PLANNED
    from npuw_layer.execution.partition.rules import LAYER, STRETCH

    if options.runs_spatial or any(tag in found for tag in (LAYER, STRETCH, PLANNED)):
        pipeline = f"NPUW_ONLINE_PIPELINE = {options.online_pipeline}"
        what = "NPUW_PLAN" if options.plan else "NPUW_SPATIAL" if options.spatial else pipeline
        raise OptionError(
            f"{what} makes submodels with experts among their ops; leave it out, or do not ask for "
            "HOST_ROUTED experts"
        )
    return {TAG: RoutedExperts(device, options.moe_token_chunk_size, options.moe_pool_size)}
