"""Checks for contradictory options, and for options that others make ineffective."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from driver_layer.abi.platforms import Platform
from npuw_layer.options.base import written
from npuw_layer.options.kinds import KindOptions, waiting
from npuw_layer.options.model import KIND_GROUPS, NAMES, OptionValues
from npuw_layer.options.partition import BY_LAYERS, COMPUTE
from npuw_layer.options.stages import StageKind


def _generate_hint(options: OptionValues) -> None:
    if {"generate_config", "generate_hint"} <= options.model_fields_set:
        raise ValueError(
            "NPUW_LLM_GENERATE_CONFIG: overrides NPUW_LLM_GENERATE_HINT; "
            "leave one of them out, or use ++NPUW_LLM_GENERATE_CONFIG"
        )


def _switchover(options: OptionValues) -> None:
    asked = options.kv_switchover == "ZERO_COPY" and "kv_switchover" in options.model_fields_set
    if asked and options.transposes_values:
        raise ValueError(
            "NPUW_LLM_KV_SWITCHOVER: ZERO_COPY needs token-major rows; set "
            "NPUW_LLM_OPTIMIZE_V_TENSORS to NO, or copy rows (COPY)"
        )


def _experts(options: OptionValues) -> None:
    hints = {options.prefill_moe_hint, options.generate_moe_hint}
    if hints != {"DENSE"} and options.weights_offload != "NO":
        raise ValueError(
            f"NPUW_WEIGHTS_OFFLOAD: {options.weights_offload} copies complete layers; "
            "leave the MOE_HINTs at DENSE"
        )


def _axes(options: OptionValues) -> None:
    if options.batch_dim == options.seq_len_dim:
        raise ValueError(
            f"NPUW_LLM_BATCH_DIM: {options.batch_dim} equals NPUW_LLM_SEQ_LEN_DIM; caches count "
            "sequences along one axis and tokens along another"
        )


def _parts(options: OptionValues) -> None:
    ways = {
        "NPUW_PLAN": options.plan,
        "NPUW_ONLINE_PIPELINE": options.online_pipeline != "NONE",
        "NPUW_ONLINE_ISOLATE, NPUW_ONLINE_AVOID": options.online_isolate or options.online_avoid,
    }
    asked = [name for name, value in ways.items() if value]
    leaves_it = options.online_pipeline in BY_LAYERS and not options.plan
    if len(asked) > 1 and not leaves_it:
        raise ValueError(f"{asked[0]}: cuts static models like {asked[1]}; leave one of them out")
    if options.cuts_models and options.weights_offload != "NO":
        raise ValueError(
            f"NPUW_WEIGHTS_OFFLOAD: {options.weights_offload} cuts models itself; "
            f"{options.leave_uncut}"
        )
    tags = {tag for _, _, tag in options.isolated_ops}
    for name, given in (
        ("NPUW_ONLINE_NO_FOLD", options.online_no_fold),
        ("NPUW_FOLD_ONLY", options.fold_only),
    ):
        if unknown := {*given} - tags:
            raise ValueError(f"{name}: no tag {', '.join(sorted(unknown))} in NPUW_ONLINE_ISOLATE")


def _spatial(options: OptionValues) -> None:
    if options.runs_spatial and COMPUTE not in {tag for _, _, tag in options.isolated_ops}:
        raise ValueError(
            f"NPUW_SPATIAL: nothing is isolated with the tag {COMPUTE}, which runs in tiles; set "
            "NPUW_ONLINE_PIPELINE to SPATIAL or COMPUTE, or NPUW_ONLINE_ISOLATE to COMPUTE"
        )


CONTRADICTIONS: Sequence[Callable[[OptionValues], None]] = (
    _generate_hint,
    _switchover,
    _experts,
    _axes,
    _parts,
    _spatial,
)
"""Checks that raise ValueError, in order."""


def check_stage(own: OptionValues, kind: StageKind, platform: Platform) -> None:
    """Check that a stage's attention and platform support its options.

    Args:
        own: the options of that stage.
        kind: kind of the stage.
        platform: NPU_PLATFORM.

    Raises:
        ValueError: an option is not supported.
    """
    if own.tiles > platform.tiles:
        raise ValueError(
            f"NPU_TILES: {own.tiles} tiles; platform {own.platform} has {platform.tiles}; lower it"
        )
    hints = {
        "prefill": ("NPUW_LLM_PREFILL_ATTENTION_HINT", own.prefill_attention_hint),
        "generate": ("NPUW_LLM_GENERATE_ATTENTION_HINT", own.generate_attention_hint),
    }
    name, hint = hints.get(kind, ("", ""))
    problem = _of_attention(own, kind, hint) if hint in ("HFA", "DYNAMIC") else ""
    if problem:
        raise ValueError(f"{name}: {hint} {problem}")


def _of_attention(own: OptionValues, kind: StageKind, hint: str) -> str:
    """Return the conflict of isolated attention with other options; empty without one."""
    if own.weights_offload != "NO":
        return "cuts models, as NPUW_WEIGHTS_OFFLOAD does; set NPUW_WEIGHTS_OFFLOAD to NO"
    if kind == "generate" and {*own.batch_slots} - {1}:
        return "supports one conversation at a time; set NPUW_LLM_BATCH_SLOTS to 1"
    if own.cuts_models:
        return f"cuts models itself; {own.leave_uncut}"
    if hint == "DYNAMIC" and "CPU" not in [one.strip() for one in own.devices.split(",")]:
        return (
            "has dynamic shapes, which programs of NPU and OPENVINO_CPU cannot have; add CPU to "
            "NPUW_DEVICES, or use HFA"
        )
    return ""


Requires = tuple[str, Callable[[OptionValues], bool]]
"""The purpose of an option, and the check that it applies."""

_PREFIXES: Requires = (
    "NPUW_LLM_ENABLE_PREFIX_CACHING = YES",
    lambda options: options.enable_prefix_caching,
)
_OFFLOAD: Requires = (
    "NPUW_WEIGHTS_OFFLOAD = SYNC or ASYNC",
    lambda options: options.weights_offload != "NO",
)
_CHECK: Requires = (
    "NPUW_ACC_CHECK = YES",
    lambda options: any(own.acc_check for own in options.of_stages),
)


def _is_requested(group: type[KindOptions], options: OptionValues) -> bool:
    return bool(group.requested(options))


WAITING: Mapping[str, Requires] = {
    "NPUW_LLM_GENERATE_PYRAMID_STEPS": (
        "NPUW_LLM_GENERATE_PYRAMID = YES",
        lambda options: options.generate_pyramid or options.generate_attention_hint == "PYRAMID",
    ),
    "NPUW_LLM_GENERATE_HINT": (
        "generate models without NPUW_FOLD, which overrides the hint",
        lambda options: options.of_stage("generate").fold == (options.generate_hint != "BEST_PERF"),
    ),
    "NPUW_LLM_CACHE_ROPE": (
        "bounded positions; with NPUW_LLM_ON_FULL = SLIDE they are unbounded",
        lambda options: options.caches_rope or not options.cache_rope,
    ),
    "NPUW_LLM_SINK_TOKENS": (
        "NPUW_LLM_ON_FULL = TRUNCATE or SLIDE",
        lambda options: options.on_full != "ERROR",
    ),
    "NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE": _PREFIXES,
    "NPUW_LLM_PREFIX_CACHING_MAX_NUM_BLOCKS": _PREFIXES,
    "NPUW_LLM_PREFIX_CACHING_MAX_BYTES": _PREFIXES,
    "NPUW_WEIGHTS_BUDGET": _OFFLOAD,
    "NPUW_WEIGHTS_RESERVED": _OFFLOAD,
    "NPUW_ACC_THRESH": _CHECK,
    "NPUW_ACC_DEVICE": _CHECK,
    **{
        name: (f"{flags} = YES", partial(_is_requested, of))
        for name, of, flags in waiting(KIND_GROUPS)
    },
}


def idle(options: OptionValues) -> Iterator[str]:
    """Yield a message for each option that is set without effect."""
    for name, (what, asked) in WAITING.items():
        field = NAMES[name]
        if field in options.model_fields_set and not asked(options):
            value = written(getattr(options, field))
            yield f"{name} = {value} has no effect: it requires {what}"
