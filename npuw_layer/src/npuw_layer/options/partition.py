"""Options of the partitioning of static models into submodels, and of their devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from npuw_layer.options.base import (
    MANY,
    Only,
    OptionGroup,
    nearest,
    readable,
)

_NORMS = ("RMSNorm", "RMSNorm2")
_WEIGHTS = ("DQMatMulGQu4", "DQMatMulGQi4", "DQMatMulCWu4", "DQMatMulCWi4")
PATTERNS = ("SDPA", *_NORMS, "RoPE", "DQMatMul", *_WEIGHTS)
"""Names behind P: — attention, normalisation (two names of one pattern), RoPE, and matmuls with
compressed weights: all (ours), or those of 4 bits in groups (GQ) or by rows (CW)."""

COMPUTE = "compute"
"""Tag of the submodels that NPUW_SPATIAL runs in tiles, the same as NPUW's."""

BY_LAYERS = ("REP", "REG")
"""Pipelines that make each repeated layer a submodel, unless options select ops."""

PRESETS = {"ATTN": "P:SDPA/attn", "COMPUTE": f"P:DQMatMul/{COMPUTE},P:RMSNorm/{COMPUTE}"}
"""Short names of common choices."""


def choices(text: str) -> list[tuple[str, str, str]]:
    """Parse "Op:Softmax/cpu,P:SDPA/attn" into kind, name, and the text behind the slash.

    Raises:
        ValueError: an entry is malformed, or names no pattern.
    """
    found: list[tuple[str, str, str]] = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        what, slash, target = (part.strip() for part in entry.partition("/"))
        kind, colon, name = what.partition(":")
        if kind not in ("Op", "P") or not colon or not name or not slash or not target:
            raise ValueError(f'{entry!r} is not a choice; write "Op:Softmax/cpu" or "P:SDPA/attn"')
        if kind == "P" and name not in PATTERNS:
            raise ValueError(f"unknown pattern {name!r}; use one of {', '.join(PATTERNS)}")
        found.append((kind, name, target))
    return found


def isolated(text: str) -> list[tuple[str, str, str]]:
    """Parse NPUW_ONLINE_ISOLATE: as ``choices``, with presets."""
    return choices(",".join(PRESETS.get(part.strip(), part) for part in text.split(",")))


def _check_types(found: Sequence[tuple[str, str, str]]) -> None:
    """Check that the chosen op types exist.

    Raises:
        ValueError: a type does not exist; the nearest is suggested.
    """
    names = [name for kind, name, _ in found if kind == "Op"]
    if not names:
        return
    # Imported here: options without op types load no graphs.
    from compiler_layer.dialects.ov import OPS

    for name in names:
        if name not in OPS:
            near = nearest(name, OPS)
            raise ValueError(f"unknown op {name!r}" + (f"; did you mean {near}?" if near else ""))


class PartitionOptions(OptionGroup):
    """Submodels within static models."""

    title: ClassVar[str] = "Partitioning"

    online_pipeline: Literal["NONE", "INIT", "JUST", "REP", "REG", "COMPUTE", "SPATIAL"] = Field(
        "NONE", alias="NPUW_ONLINE_PIPELINE"
    )
    """NONE compiles each static model as one program, except ops that NPUW_ONLINE_ISOLATE and
    NPUW_ONLINE_AVOID cut out. INIT makes each op a submodel. JUST makes up to NPUW_ONLINE_MIN_SIZE
    submodels of similar size with few links. REP makes each repeated layer a submodel, and REG is
    the same here, as no hints are needed to find layers; if NPUW_ONLINE_ISOLATE or
    NPUW_ONLINE_AVOID selects ops, these and the ops between them are submodels instead. COMPUTE is
    NPUW_ONLINE_ISOLATE=COMPUTE, with each submodel compiled separately. SPATIAL is the same, with
    equal submodels compiled once, and NPUW_SPATIAL. Equal submodels are compiled once (NPUW_FOLD),
    and each is offered to NPUW_DEVICES in turn."""
    online_min_size: int = Field(10, alias="NPUW_ONLINE_MIN_SIZE", ge=0, le=MANY)
    """Number of submodels that JUST cuts a static model into; fewer than 10 are 10, as in NPUW."""
    online_keep_blocks: int = Field(5, alias="NPUW_ONLINE_KEEP_BLOCKS", ge=1, le=MANY)
    """Minimum repetitions of a layer that becomes a submodel, with REP and REG."""
    online_keep_block_size: int = Field(10, alias="NPUW_ONLINE_KEEP_BLOCK_SIZE", ge=1, le=MANY)
    """Minimum ops of such a layer."""
    plan: str = Field("", alias="NPUW_PLAN")
    """A file that lists the ops of each submodel, as NPUW_ONLINE_DUMP_PLAN writes it for one static
    model; it applies to all. Each <group> of <partitioning> is read: the names of its <layer>s,
    their types if present, and in its attribute avoid the device that must not run it. Ops of no
    group run between the groups. A model cut by a plan cannot be exported. NPUW_ONLINE_DUMP_PLAN
    writes a digest into the first comment, so that a damaged plan is rejected; remove the comment
    after an edit."""
    online_isolate: Annotated[str, readable(lambda text: _check_types(isolated(text)))] = Field(
        "", alias="NPUW_ONLINE_ISOLATE"
    )
    """Ops that become separate submodels, with a tag: "P:SDPA/attn,Op:Softmax/mine" names patterns
    (SDPA, RMSNorm, RoPE, DQMatMul; and NPUW's DQMatMulGQu4, …GQi4, …CWu4, …CWi4, RMSNorm2) or types
    of ops; ATTN and COMPUTE are presets."""
    online_avoid: Annotated[str, readable(lambda text: _check_types(choices(text)))] = Field(
        "", alias="NPUW_ONLINE_AVOID"
    )
    """Ops that a device must not run, e.g. "P:RMSNorm/NPU,Op:Softmax/NPU": they run on the other
    devices of NPUW_DEVICES."""
    online_no_fold: tuple[str, ...] = Field((), alias="NPUW_ONLINE_NO_FOLD")
    """Tags of NPUW_ONLINE_ISOLATE whose submodels are compiled one by one, even if equal."""
    fold_only: tuple[str, ...] = Field((), alias="NPUW_FOLD_ONLY")
    """Tags of NPUW_ONLINE_ISOLATE, the only ones whose equal submodels are compiled once; if empty,
    NPUW_FOLD and NPUW_ONLINE_NO_FOLD decide."""
    attn: Annotated[
        Literal["STATIC", "DYNAMIC", "PYRAMID", "HFA"],
        Only(
            ("STATIC",),
            "NPUW_LLM_PREFILL_ATTENTION_HINT and NPUW_LLM_GENERATE_ATTENTION_HINT set it for "
            "language models, and other models support no other value",
        ),
    ] = Field("STATIC", alias="NPUW_ATTN")
    """Attention of a static model: over all of its positions."""
    spatial: bool = Field(False, alias="NPUW_SPATIAL")
    """Run ops isolated with the tag compute in token tiles: they are compiled for
    NPUW_SPATIAL_NWAY tokens, not for those of a complete prompt. A block is the row-wise ops around
    the selected ops, mostly all from one attention to the next. Needs
    NPUW_ONLINE_PIPELINE = COMPUTE, or NPUW_ONLINE_ISOLATE with that tag; with
    NPUW_ONLINE_PIPELINE = SPATIAL it is always on."""
    spatial_nway: int = Field(128, alias="NPUW_SPATIAL_NWAY", ge=1, le=MANY)
    """Tokens of a tile. Models for at most this number of tokens are not cut into tiles."""
    spatial_dyn: bool = Field(True, alias="NPUW_SPATIAL_DYN")
    """Skip tiles without tokens, according to the model's attention_mask; results of padding are
    then zeros. Padding is all positions with a mask of 0 before the first 1 or behind the last; a
    mask of zeros skips no tile."""
    online_dump_plan: str = Field("", alias="NPUW_ONLINE_DUMP_PLAN")
    """File for the ops of each submodel: for "plan.xml", "plan.prefill_1024.xml" and so on, one for
    each static model that is compiled, not loaded from the cache. Not written for models with
    offloaded weights."""
