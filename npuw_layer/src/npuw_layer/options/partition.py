"""Options of the partitioning of static models into submodels, and of their devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from npuw_layer.options.base import (
    MANY,
    Only,
    OptionGroup,
    nearest,
)

_NORMS = ("RMSNorm", "RMSNorm2")
_WEIGHTS = ("DQMatMulGQu4", "DQMatMulGQi4", "DQMatMulCWu4", "DQMatMulCWi4")
PATTERNS = ("SDPA", *_NORMS, "RoPE", "DQMatMul", *_WEIGHTS)
"""Names behind P: — attention, normalisation (two names of one pattern), RoPE, and matmuls with
compressed weights: all (ours), or those of 4 bits in groups (GQ) or by rows (CW)."""

COMPUTE = "compute"
"""Tag of the submodels that NPUW_SPATIAL runs in tiles, the same as the original's."""

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
            raise ValueError(f'{entry!r} is no choice; write "Op:Softmax/cpu" or "P:SDPA/attn"')
        if kind == "P" and name not in PATTERNS:
            raise ValueError(f"there is no pattern {name!r}; known are {', '.join(PATTERNS)}")
        found.append((kind, name, target))
    return found


def isolated(text: str) -> list[tuple[str, str, str]]:
    """Parse NPUW_ONLINE_ISOLATE: as ``choices``, with presets."""
    return choices(",".join(PRESETS.get(part.strip(), part) for part in text.split(",")))


def _checked_choices(text: str) -> str:
    _check_types(choices(text))
    return text


def _checked_isolated(text: str) -> str:
    _check_types(isolated(text))
    return text


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
            raise ValueError(f"no op {name!r}" + (f"; did you mean {near}?" if near else ""))


class PartitionOptions(OptionGroup):
    """Submodels within static models."""

    title: ClassVar[str] = "Partitioning"

    online_pipeline: Literal["NONE", "INIT", "JUST", "REP", "REG", "COMPUTE", "SPATIAL"] = Field(
        "NONE", alias="NPUW_ONLINE_PIPELINE"
    )
    """NONE compiles each static model as one program, but for what NPUW_ONLINE_ISOLATE and
    NPUW_ONLINE_AVOID cut out. INIT makes each op a submodel; JUST makes up to NPUW_ONLINE_MIN_SIZE
    of about equal size, joined by little; REP makes each repeated layer one, and REG is the same
    here, as no hints are needed to find layers: where NPUW_ONLINE_ISOLATE or NPUW_ONLINE_AVOID
    chooses ops, these and what lies between them are submodels instead. COMPUTE cuts out what
    NPUW_ONLINE_ISOLATE=COMPUTE does, each compiled by itself; SPATIAL does so too, but compiles
    equal ones once, with NPUW_SPATIAL. Equal submodels are compiled once (NPUW_FOLD), and each is
    offered to NPUW_DEVICES in turn."""
    online_min_size: int = Field(10, alias="NPUW_ONLINE_MIN_SIZE", ge=0, le=MANY)
    """How many submodels JUST leaves of a static model; fewer than 10 count as 10, as in the
    original."""
    online_keep_blocks: int = Field(5, alias="NPUW_ONLINE_KEEP_BLOCKS", ge=1, le=MANY)
    """How often a layer must be there to be a submodel of its own, with REP and REG."""
    online_keep_block_size: int = Field(10, alias="NPUW_ONLINE_KEEP_BLOCK_SIZE", ge=1, le=MANY)
    """How many ops it must have."""
    plan: str = Field("", alias="NPUW_PLAN")
    """A file that says which ops make a submodel, as NPUW_ONLINE_DUMP_PLAN writes it of a static
    model: it counts for all of them. Of <partitioning> each <group> is read, with the names of its
    <layer>s, their types if they are given, and the device in its attribute avoid, which it does
    not run on. Ops of no group run between the groups. A model that is cut so is not exported.
    NPUW_ONLINE_DUMP_PLAN writes a digest into the first comment, by which a damaged plan is
    refused; who edits a plan takes the comment out."""
    online_isolate: Annotated[str, AfterValidator(_checked_isolated)] = Field(
        "", alias="NPUW_ONLINE_ISOLATE"
    )
    """What becomes a submodel of its own, with a tag: "P:SDPA/attn,Op:Softmax/mine" names patterns
    (SDPA, RMSNorm, RoPE, DQMatMul; as the original has it, DQMatMulGQu4, …GQi4, …CWu4, …CWi4,
    RMSNorm2) or types of ops; ATTN and COMPUTE stand for usual choices."""
    online_avoid: Annotated[str, AfterValidator(_checked_choices)] = Field(
        "", alias="NPUW_ONLINE_AVOID"
    )
    """What a device does not get, e.g. "P:RMSNorm/NPU,Op:Softmax/NPU": it runs on the others of
    NPUW_DEVICES."""
    online_no_fold: tuple[str, ...] = Field((), alias="NPUW_ONLINE_NO_FOLD")
    """Tags of NPUW_ONLINE_ISOLATE whose submodels are compiled one by one, even if equal."""
    fold_only: tuple[str, ...] = Field((), alias="NPUW_FOLD_ONLY")
    """Tags of NPUW_ONLINE_ISOLATE whose equal submodels are compiled once, and no others; empty
    leaves it to NPUW_FOLD and NPUW_ONLINE_NO_FOLD."""
    attn: Annotated[
        Literal["STATIC", "DYNAMIC", "PYRAMID", "HFA"],
        Only(
            ("STATIC",),
            "of language models NPUW_LLM_PREFILL_ATTENTION_HINT and "
            "NPUW_LLM_GENERATE_ATTENTION_HINT say it, and of other models there is no other way",
        ),
    ] = Field("STATIC", alias="NPUW_ATTN")
    """How the attention of a static model runs: over all positions that it has."""
    spatial: bool = Field(False, alias="NPUW_SPATIAL")
    """Runs what is isolated with the tag compute in tiles of tokens: it is compiled for
    NPUW_SPATIAL_NWAY tokens, not for those of a whole prompt. A block is what computes each token
    by itself around the chosen ops: mostly all from one attention to the next. It needs
    NPUW_ONLINE_PIPELINE = COMPUTE, or NPUW_ONLINE_ISOLATE with that tag; with
    NPUW_ONLINE_PIPELINE = SPATIAL it is always on."""
    spatial_nway: int = Field(128, alias="NPUW_SPATIAL_NWAY", ge=1, le=MANY)
    """Tokens of a tile. Models that take no more are not cut into tiles."""
    spatial_dyn: bool = Field(True, alias="NPUW_SPATIAL_DYN")
    """Tiles in which no token is, as the model's attention_mask says, are not run: what comes of
    padding is zeros then. Padding is all that has a mask of 0 before the first 1 or behind the last
    one; a mask of zeros alone says nothing."""
    online_dump_plan: str = Field("", alias="NPUW_ONLINE_DUMP_PLAN")
    """Where it is written which ops went to which submodel: for "plan.xml" of each static model
    that is compiled, not taken from the cache, "plan.prefill_1024.xml" and so on. Not of models
    whose weights are offloaded."""
