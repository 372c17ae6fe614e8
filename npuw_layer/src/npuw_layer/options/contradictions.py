"""Options that contradict one another, each pair told with what to leave out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from npuw_layer.options.partition import BY_LAYERS, COMPUTE

if TYPE_CHECKING:
    from npuw_layer.options.model import Options


def _generate_hint(options: Options) -> None:
    if {"generate_config", "generate_hint"} <= options.model_fields_set:
        raise ValueError(
            "NPUW_LLM_GENERATE_CONFIG: replaces what NPUW_LLM_GENERATE_HINT chooses; "
            "leave one of them out, or use ++NPUW_LLM_GENERATE_CONFIG"
        )


def _switchover(options: Options) -> None:
    asked = options.kv_switchover == "ZERO_COPY" and "kv_switchover" in options.model_fields_set
    if asked and options.transposes_values:
        raise ValueError(
            "NPUW_LLM_KV_SWITCHOVER: ZERO_COPY needs rows that lie token by token; set "
            "NPUW_LLM_OPTIMIZE_V_TENSORS to NO, or let rows be copied (COPY)"
        )


def _experts(options: Options) -> None:
    hints = {options.prefill_moe_hint, options.generate_moe_hint}
    if hints != {"DENSE"} and options.weights_offload != "NO":
        raise ValueError(
            f"NPUW_WEIGHTS_OFFLOAD: {options.weights_offload} brings the weights of whole layers; "
            "leave the MOE_HINTs at DENSE"
        )


def _axes(options: Options) -> None:
    if options.batch_dim == options.seq_len_dim:
        raise ValueError(
            f"NPUW_LLM_BATCH_DIM: {options.batch_dim} is NPUW_LLM_SEQ_LEN_DIM, too; caches count "
            "sequences along one axis and tokens along another"
        )


def _parts(options: Options) -> None:
    ways = {
        "NPUW_PLAN": options.plan,
        "NPUW_ONLINE_PIPELINE": options.online_pipeline != "NONE",
        "NPUW_ONLINE_ISOLATE, NPUW_ONLINE_AVOID": options.online_isolate or options.online_avoid,
    }
    asked = [name for name, value in ways.items() if value]
    leaves_it = options.online_pipeline in BY_LAYERS and not options.plan
    if len(asked) > 1 and not leaves_it:
        raise ValueError(
            f"{asked[0]}: says where static models are cut, and so does {asked[1]}; leave one "
            "of them out"
        )
    if options.cuts_models and options.weights_offload != "NO":
        raise ValueError(
            f"NPUW_WEIGHTS_OFFLOAD: {options.weights_offload} cuts models in its own way; "
            f"{options.leave_uncut}"
        )
    tags = {tag for _, _, tag in options.isolated_ops}
    for name, given in (
        ("NPUW_ONLINE_NO_FOLD", options.online_no_fold),
        ("NPUW_FOLD_ONLY", options.fold_only),
    ):
        if unknown := {*given} - tags:
            raise ValueError(f"{name}: NPUW_ONLINE_ISOLATE has no tag {', '.join(sorted(unknown))}")


def _spatial(options: Options) -> None:
    if options.runs_spatial and COMPUTE not in {tag for _, _, tag in options.isolated_ops}:
        raise ValueError(
            f"NPUW_SPATIAL: runs what is isolated as {COMPUTE} in tiles, and nothing is; set "
            "NPUW_ONLINE_PIPELINE to SPATIAL or COMPUTE, or NPUW_ONLINE_ISOLATE to COMPUTE"
        )


CONTRADICTIONS: Sequence[Callable[[Options], None]] = (
    _generate_hint,
    _switchover,
    _experts,
    _axes,
    _parts,
    _spatial,
)
"""What raises ValueError, by turns."""
