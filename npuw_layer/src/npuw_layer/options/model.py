"""All options of a model, and values derived from several of them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Self

from npuw_layer.options.base import DEVICE_ROUTED, EXPERTS, OptionGroup
from npuw_layer.options.devices import (
    CompilerOptions,
    DeviceOptions,
    TurnOptions,
)
from npuw_layer.options.kinds import KindOptions, listed
from npuw_layer.options.llm import (
    ISOLATED,
    KV_ELEMENTS,
    PROMPT_GRAIN,
    ExpertOptions,
    GenerateOptions,
    KvElement,
    KvOptions,
    LengthOptions,
    PrefillOptions,
)
from npuw_layer.options.mechanisms import MechanismOptions
from npuw_layer.options.partition import BY_LAYERS, COMPUTE, PartitionOptions, isolated
from npuw_layer.options.plain import PlainOptions
from npuw_layer.options.reports import (
    DumpOptions,
    LogOptions,
    ProfilingOptions,
)
from npuw_layer.options.stages import KINDS, StageKind, StageOptions
from npuw_layer.options.storage import (
    CacheOptions,
    WeightOptions,
)


class OptionValues(
    LengthOptions,
    PrefillOptions,
    GenerateOptions,
    ExpertOptions,
    KvOptions,
    WeightOptions,
    StageOptions,
    CacheOptions,
    DeviceOptions,
    PartitionOptions,
    DumpOptions,
    ProfilingOptions,
    TurnOptions,
    LogOptions,
    CompilerOptions,
    PlainOptions,
    MechanismOptions,
):
    """All options that a compiled model depends on; unknown names are rejected."""

    @property
    def kv_element(self) -> KvElement:
        """Element type of cached K and V; empty if it is the type of activations."""
        same = self.kv_cache_precision == self.precision
        return "" if same else KV_ELEMENTS[self.kv_cache_precision]

    @property
    def routes_experts(self) -> bool:
        """True if the host routes tokens to experts, in prefill or generate models."""
        return "HOST_ROUTED" in (self.prefill_moe_hint, self.generate_moe_hint)

    @property
    def falls_back(self) -> bool:
        """True if a device takes over when another fails; DYNAMIC keeps no graphs for that."""
        hints = (self.prefill_attention_hint, self.generate_attention_hint)
        return self.fallback_exec and "DYNAMIC" not in hints

    @property
    def weightless(self) -> bool:
        """True if blobs contain no weights; NPUW's programs never do, to share weights."""
        if self.enable_weightless is not None:
            return self.enable_weightless
        return self.cache_mode == "OPTIMIZE_SIZE"

    @property
    def resumes_prefill(self) -> bool:
        """True if an option needs prompts that begin after any number of stored tokens."""
        return self.enable_continuous_prefill or self.enable_prefix_caching

    @property
    def reads_chunks(self) -> bool:
        """True if several prefill models may read a prompt in turn."""
        chunked = self.prefill_hint == "DYNAMIC" and self.prefill_chunk_size > 0
        return chunked and self.prefill_pyramid and self.generates

    @property
    def writes_in_place(self) -> bool:
        """True if prefill writes its rows where generate reads them."""
        return self.kv_switchover == "ZERO_COPY" and not self.transposes_values

    @property
    def transposes_values(self) -> bool:
        """True if V is transposed; never if isolated attention reads it token-major."""
        hints = {self.prefill_attention_hint, self.generate_attention_hint}
        return self.optimize_v_tensors and not hints & {"HFA", "DYNAMIC"}

    @property
    def isolated_attention(self) -> dict[StageKind, str]:
        """Kinds of models whose attention is a separate submodel, with their hints.

        As in NPUW, prompts that are read in one inference are left out: no rows are cached before
        them.
        """
        hints: dict[StageKind, str] = {"generate": self.generate_attention_hint}
        whole = -(-self.max_prompt_len // PROMPT_GRAIN) * PROMPT_GRAIN
        if self.prefill_hint == "DYNAMIC" and 0 < self.prefill_chunk_size < whole:
            hints["prefill"] = self.prefill_attention_hint
        return {kind: hint for kind, hint in hints.items() if hint in ISOLATED}

    @property
    def caches_rope(self) -> bool:
        """True if cos and sin come from tables; SLIDE has unbounded positions, and no tables."""
        return self.cache_rope and self.on_full != "SLIDE"

    @property
    def cuts_head(self) -> bool:
        """True if the LM head is a separate model."""
        offloads = self.weights_offload != "NO"
        return self.shared_head and not offloads and not self.gives_hidden_states

    @property
    def generates(self) -> bool:
        """True if a split model has generate stages."""
        return all(group.generates or not group.requested(self) for group in KIND_GROUPS)

    @property
    def gives_hidden_states(self) -> bool:
        """True if a split model's output is hidden states, not logits."""
        return any(group.hidden_states_only(self.group(group)) for group in KIND_GROUPS)

    @property
    def kinds_key(self) -> dict[str, str]:
        """Options of kinds that programs depend on."""
        every = (group.cache_key(self.group(group)) for group in KIND_GROUPS)
        return {name: value for key in every for name, value in key.items()}

    @property
    def cuts_models(self) -> bool:
        """True if static models are cut into submodels."""
        return bool(
            self.online_pipeline != "NONE" or self.online_isolate or self.online_avoid or self.plan
        )

    @property
    def leave_uncut(self) -> str:
        """Remedy for conflicts with options that cut static models, as a text."""
        which = "NPUW_PLAN out" if self.plan else "the options NPUW_ONLINE_… at their defaults"
        return f"leave {which}"

    @property
    def cuts_layers(self) -> bool:
        """True if repeated layers are submodels; false if options select ops."""
        chosen = self.online_isolate or self.online_avoid
        return self.online_pipeline in BY_LAYERS and not chosen

    @property
    def least_ranges(self) -> int:
        """Number of submodels that JUST cuts a static model into."""
        return max(10, self.online_min_size)

    @property
    def isolated_ops(self) -> list[tuple[str, str, str]]:
        """Ops that are separate submodels: kind, name and tag of each choice."""
        by_pipeline = self.online_pipeline in ("COMPUTE", "SPATIAL")
        return isolated("COMPUTE" if by_pipeline else self.online_isolate)

    @property
    def runs_spatial(self) -> bool:
        """True if submodels with the tag compute run in token tiles."""
        return self.spatial or self.online_pipeline == "SPATIAL"

    @property
    def unfolded_tags(self) -> tuple[str, ...]:
        """Tags whose submodels are compiled one by one; NPUW_FOLD_ONLY lists tags to fold."""
        alone = (COMPUTE,) if self.online_pipeline == "COMPUTE" else ()
        return (*self.online_no_fold, *alone)

    @property
    def shares_weights(self) -> bool:
        """True if other processes may use the weights, too."""
        return bool(self.weights_bank) or self.weights_bank_alloc == "SHARED"

    def of_stage(self, kind: StageKind) -> Self:
        """Return the options of one kind of static model, merged as described in ``stages``."""
        replaced, more = self.stage_maps(kind)
        if kind == "generate" and self.generate_hint == "BEST_PERF":
            replaced = {"NPUW_FOLD": False}
        if not replaced and not more:
            return self
        own = self.model_dump(by_alias=True, exclude_unset=True)
        return type(self).model_validate({**replaced, **own, **more})

    def named(self, name: str) -> Any:
        """Return an option by OpenVINO's name; None if its kind is not installed."""
        return getattr(self, NAMES[name]) if name in NAMES else None

    @property
    def of_stages(self) -> Sequence[Self]:
        """Options of each kind of static model; a single element if the model is not split."""
        return [self] if self.llm is False else [self.of_stage(kind) for kind in KINDS]

    def experts_hint(self, kind: StageKind) -> str:
        """Return the way that experts run in a kind of static model; empty for the LM head."""
        hints = {"prefill": self.prefill_moe_hint, "generate": self.generate_moe_hint}
        return hints.get(kind, "")

    def experts_config(self, kind: StageKind) -> dict[str, str]:
        """Return the compiler's setting of experts (``EXPERTS``) for one kind of static model."""
        by_device = kind == "generate" and self.generate_moe_hint == DEVICE_ROUTED
        return {EXPERTS: DEVICE_ROUTED} if by_device else {}

    def compiler_config(self) -> dict[str, str]:
        """Return the compiler's settings."""
        return {
            "INFERENCE_PRECISION_HINT": self.precision,
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": str(self.dynamic_quantization_group_size),
            "NPU_PLATFORM": self.platform,
            "NPU_TILES": str(self.tiles),
            "ENABLE_WEIGHTLESS": "YES",
            "NPUW_FOLD": "YES" if self.fold else "NO",
        }


# Imported by name: kinds are a higher layer, and read the options declared above this line.
KIND_GROUPS: Sequence[type[KindOptions]] = import_module("npuw_layer.kinds.registry").groups()
"""Groups of the installed kinds, in the order in which kinds are tried."""

GROUPS = listed(
    [base for base in OptionValues.__bases__ if issubclass(base, OptionGroup)], KIND_GROUPS
)
"""All groups in listing order."""

NAMES: dict[str, str] = {
    field.alias: name
    for group in GROUPS
    for name, field in group.model_fields.items()
    if field.alias is not None
}
"""Field names by OpenVINO's names of the options, in the order of the groups."""
