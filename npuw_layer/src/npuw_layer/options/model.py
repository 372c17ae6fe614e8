"""All options of a compiled model, and what follows from several of them together."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from npuw_layer.options.base import OptionGroup
from npuw_layer.options.cache import CacheOptions
from npuw_layer.options.compiler import CompilerOptions
from npuw_layer.options.devices import DeviceOptions
from npuw_layer.options.dumps import DumpOptions
from npuw_layer.options.experts import ExpertOptions
from npuw_layer.options.generate import GenerateOptions
from npuw_layer.options.kokoro import KokoroOptions
from npuw_layer.options.kv import KV_ELEMENTS, KvElement, KvOptions
from npuw_layer.options.lengths import LengthOptions
from npuw_layer.options.modes import check_modes
from npuw_layer.options.paged import PagedOptions
from npuw_layer.options.partition import COMPUTE, PartitionOptions, isolated
from npuw_layer.options.plain import PlainOptions
from npuw_layer.options.prefill import PrefillOptions
from npuw_layer.options.stages import StageKind, StageOptions
from npuw_layer.options.texts import TextOptions
from npuw_layer.options.weights import WeightOptions
from npuw_layer.options.whisper import WhisperOptions
from npuw_layer.ports import DEVICE_ROUTED, EXPERTS

GROUPS: tuple[type[OptionGroup], ...] = (
    LengthOptions,
    PrefillOptions,
    GenerateOptions,
    TextOptions,
    ExpertOptions,
    KvOptions,
    WhisperOptions,
    KokoroOptions,
    PagedOptions,
    WeightOptions,
    StageOptions,
    CacheOptions,
    DeviceOptions,
    PartitionOptions,
    DumpOptions,
    CompilerOptions,
    PlainOptions,
)
"""In the order in which they are shown."""


class Options(
    LengthOptions,
    PrefillOptions,
    GenerateOptions,
    TextOptions,
    ExpertOptions,
    KvOptions,
    WhisperOptions,
    KokoroOptions,
    PagedOptions,
    WeightOptions,
    StageOptions,
    CacheOptions,
    DeviceOptions,
    PartitionOptions,
    DumpOptions,
    CompilerOptions,
    PlainOptions,
):
    """What a compiled model depends on besides the model; unknown names are refused."""

    @model_validator(mode="after")
    def _check_generate_hint(self) -> Self:
        if {"generate_config", "generate_hint"} <= self.model_fields_set:
            raise ValueError(
                "NPUW_LLM_GENERATE_CONFIG: replaces what NPUW_LLM_GENERATE_HINT chooses; "
                "leave one of them out, or use ++NPUW_LLM_GENERATE_CONFIG"
            )
        return self

    @model_validator(mode="after")
    def _check_switchover(self) -> Self:
        asked = self.kv_switchover == "ZERO_COPY" and "kv_switchover" in self.model_fields_set
        if asked and self.optimize_v_tensors:
            raise ValueError(
                "NPUW_LLM_KV_SWITCHOVER: ZERO_COPY needs rows that lie token by token; set "
                "NPUW_LLM_OPTIMIZE_V_TENSORS to NO, or let rows be copied (COPY)"
            )
        return self

    @model_validator(mode="after")
    def _check_experts(self) -> Self:
        hints = {self.prefill_moe_hint, self.generate_moe_hint}
        if hints != {"DENSE"} and self.weights_offload != "NO":
            raise ValueError(
                f"NPUW_WEIGHTS_OFFLOAD: {self.weights_offload} brings the weights of whole layers; "
                "leave the MOE_HINTs at DENSE"
            )
        return self

    @model_validator(mode="after")
    def _check_modes(self) -> Self:
        if self.kokoro and self.kokoro_overlap_size >= self.kokoro_block_size:
            raise ValueError(
                f"NPUW_KOKORO_OVERLAP_SIZE: {self.kokoro_overlap_size} has to be less than "
                f"NPUW_KOKORO_BLOCK_SIZE = {self.kokoro_block_size}"
            )
        check_modes(self)
        return self

    @model_validator(mode="after")
    def _check_texts(self) -> Self:
        if self.text_embed and self.text_rerank:
            raise ValueError(
                "NPUW_TEXT_RERANK: a model embeds texts (NPUW_TEXT_EMBED) or ranks them"
            )
        if self.reads_texts and self.on_full != "ERROR":
            raise ValueError(
                f"NPUW_LLM_ON_FULL: {self.on_full} is for conversations that go on; texts that are "
                "read alone are refused if they are too long"
            )
        if self.text_embed and self.enable_prefix_caching:
            raise ValueError(
                "NPUW_LLM_ENABLE_PREFIX_CACHING: NPUW_TEXT_EMBED wants the hidden states of all "
                "tokens, and K and V alone are kept; leave it out"
            )
        return self

    @model_validator(mode="after")
    def _check_kv_precision(self) -> Self:
        floats = self.kv_cache_precision and not self.kv_element
        if floats and self.kv_cache_precision != self.precision:
            raise ValueError(
                f"KV_CACHE_PRECISION: {self.kv_cache_precision} with INFERENCE_PRECISION_HINT = "
                f"{self.precision}; K and V have the type of activations, or 8 bits"
            )
        return self

    @property
    def kv_element(self) -> KvElement:
        """What K and V are stored as; empty if that is what activations are."""
        return KV_ELEMENTS[self.kv_cache_precision]

    @property
    def routes_experts(self) -> bool:
        """Whether the host routes tokens to experts, in prefill or generate models."""
        return "HOST_ROUTED" in (self.prefill_moe_hint, self.generate_moe_hint)

    @model_validator(mode="after")
    def _check_attention(self) -> Self:
        for name, hint in (
            ("NPUW_LLM_PREFILL_ATTENTION_HINT", self.prefill_attention_hint),
            ("NPUW_LLM_GENERATE_ATTENTION_HINT", self.generate_attention_hint),
        ):
            if hint in ("HFA", "DYNAMIC"):
                self._check_isolated(name, hint)
        return self

    def _check_isolated(self, name: str, hint: str) -> None:
        """See that nothing is asked for that attention by itself cannot do."""
        problem = ""
        if self.optimize_v_tensors:
            problem = "needs rows that lie token by token; set NPUW_LLM_OPTIMIZE_V_TENSORS to NO"
        elif self.weights_offload != "NO":
            problem = "cuts models in another way than NPUW_WEIGHTS_OFFLOAD does; set that to NO"
        elif name == "NPUW_LLM_GENERATE_ATTENTION_HINT" and {*self.batch_slots} - {1}:
            problem = "attends for one conversation at a time; set NPUW_LLM_BATCH_SLOTS to 1"
        elif self.enable_block_based_kv_cache:
            problem = (
                "reads caches that lie in one piece; set NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE to NO"
            )
        elif self.cuts_models:
            problem = "cuts models itself; leave the options NPUW_ONLINE_… as they are"
        elif "OPENVINO_CPU" in self.devices:
            problem = "cuts models, and OPENVINO_CPU runs them whole; set NPUW_DEVICES to others"
        elif hint == "DYNAMIC" and "CPU" not in [one.strip() for one in self.devices.split(",")]:
            problem = (
                "has open shapes, which no NPU takes: it runs on the CPU; set NPUW_DEVICES to "
                '"NPU,CPU" or CPU, or use HFA'
            )
        if problem:
            raise ValueError(f"{name}: {hint} {problem}")

    @property
    def falls_back(self) -> bool:
        """Whether a device takes over what another fails to run; of DYNAMIC none keeps graphs."""
        hints = (self.prefill_attention_hint, self.generate_attention_hint)
        return self.fallback_exec and "DYNAMIC" not in hints

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        ways = {
            "NPUW_PLAN": self.plan,
            "NPUW_ONLINE_PIPELINE": self.online_pipeline != "NONE",
            "NPUW_ONLINE_ISOLATE, NPUW_ONLINE_AVOID": self.online_isolate or self.online_avoid,
        }
        asked = [name for name, value in ways.items() if value]
        if len(asked) > 1:
            raise ValueError(
                f"{asked[0]}: says where static models are cut, and so does {asked[1]}; leave one "
                "of them out"
            )
        if self.cuts_models and self.weights_offload != "NO":
            raise ValueError(
                f"NPUW_WEIGHTS_OFFLOAD: {self.weights_offload} cuts models in its own way; leave "
                "the options NPUW_ONLINE_… as they are"
            )
        unknown = {*self.online_no_fold} - {tag for _, _, tag in self.isolated_ops}
        if unknown:
            raise ValueError(
                f"NPUW_ONLINE_NO_FOLD: NPUW_ONLINE_ISOLATE has no tag {', '.join(sorted(unknown))}"
            )
        return self

    @model_validator(mode="after")
    def _check_spatial(self) -> Self:
        if self.runs_spatial and COMPUTE not in {tag for _, _, tag in self.isolated_ops}:
            raise ValueError(
                f"NPUW_SPATIAL: runs what is isolated as {COMPUTE} in tiles, and nothing is; set "
                "NPUW_ONLINE_PIPELINE to SPATIAL or COMPUTE, or NPUW_ONLINE_ISOLATE to COMPUTE"
            )
        return self

    @property
    def weightless(self) -> bool:
        """Whether blobs are without weights; NPUW's programs always are, to share them."""
        if self.enable_weightless is not None:
            return self.enable_weightless
        return self.cache_mode == "OPTIMIZE_SIZE"

    @property
    def resumes_prefill(self) -> bool:
        """Whether prompts may begin behind tokens that are stored already."""
        return self.enable_continuous_prefill or self.enable_prefix_caching

    @property
    def writes_in_place(self) -> bool:
        """Whether prefill writes its rows where generate reads them."""
        return self.kv_switchover == "ZERO_COPY" and not self.optimize_v_tensors

    @property
    def caches_rope(self) -> bool:
        """Whether rotary angles come from tables; where the cache slides, positions never end."""
        return self.cache_rope and self.on_full != "SLIDE"

    @property
    def cuts_head(self) -> bool:
        """Whether the head is a model of its own."""
        return self.shared_head and self.weights_offload == "NO" and not self.text_embed

    @property
    def cuts_models(self) -> bool:
        """Whether static models are cut into submodels."""
        return bool(
            self.online_pipeline != "NONE" or self.online_isolate or self.online_avoid or self.plan
        )

    @property
    def isolated_ops(self) -> list[tuple[str, str, str]]:
        """The ops that are submodels of their own: kind, name and tag of each choice."""
        by_pipeline = self.online_pipeline in ("COMPUTE", "SPATIAL")
        return isolated("COMPUTE" if by_pipeline else self.online_isolate)

    @property
    def runs_spatial(self) -> bool:
        """Whether what is isolated with the tag compute runs in tiles of tokens."""
        return self.spatial or self.online_pipeline == "SPATIAL"

    @property
    def unfolded_tags(self) -> tuple[str, ...]:
        """The tags whose submodels are compiled one by one."""
        alone = (COMPUTE,) if self.online_pipeline == "COMPUTE" else ()
        return (*self.online_no_fold, *alone)

    @property
    def shares_weights(self) -> bool:
        """Whether other processes may use the weights too."""
        return bool(self.weights_bank or self.weights_bank_alloc)

    def of_stage(self, kind: StageKind) -> Options:
        """The options of one kind of static model, merged as ``stages`` says."""
        replaced, more = self.stage_maps(kind)
        if kind == "generate" and self.generate_hint == "BEST_PERF":
            replaced = {"NPUW_FOLD": False}
        own = self.model_dump(by_alias=True, exclude_unset=True)
        return Options.model_validate({**replaced, **own, **more})

    def experts_config(self, kind: StageKind) -> dict[str, str]:
        """What the compiler of one kind of static model is told of experts (``ports.EXPERTS``)."""
        by_device = kind == "generate" and self.generate_moe_hint == DEVICE_ROUTED
        return {EXPERTS: DEVICE_ROUTED} if by_device else {}

    def compiler_config(self) -> dict[str, str]:
        """What the compiler is told."""
        return {
            "INFERENCE_PRECISION_HINT": self.precision,
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": str(self.dynamic_quantization_group_size),
            "NPU_PLATFORM": self.platform,
            "NPU_TILES": str(self.tiles),
            "ENABLE_WEIGHTLESS": "YES",
            "NPUW_FOLD": "YES" if self.fold else "NO",
        }


NAMES: dict[str, str] = {
    field.alias: name
    for group in GROUPS
    for name, field in group.model_fields.items()
    if field.alias is not None
}
"""The options by OpenVINO's name, with the name of their field; in the order of their groups."""
