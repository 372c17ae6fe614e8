"""Prediction of a plan from a ``config.json``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from compiler_layer.errors import CompilerError
from compiler_layer.rewriting.garbage import collected_later
from driver_layer.support.files import looking_at
from npuw_layer.errors import ModelError, OptionError
from npuw_layer.llm.plan.chunks import cheapest
from npuw_layer.llm.plan.lengths import Lengths
from npuw_layer.llm.plan.stages import SMALLEST_PREFILL, Stage, StageKind, kv_layout
from npuw_layer.llm.plan.stages import LLMPlan as Stages
from npuw_layer.llm.plan.stages import plan as plan_stages
from npuw_layer.options import Options
from npuw_layer.plan.fork import map_forked
from npuw_layer.plan.memory import Item, cache_size, count_parameters, new_row_bytes, weigh
from npuw_layer.plan.stage import StagePrediction, plan_stage

if TYPE_CHECKING:
    from compiler_layer.frontends.huggingface.decoder import Decoder
    from compiler_layer.frontends.huggingface.sample import Sample
    from compiler_layer.quantize.schemes import Format, Scheme
    from compiler_layer.quantize.weights import Weight

EXPECTED_ERROR = 0.20
"""Relative error bound of times and blob sizes; ``tests/npuw/plan/test_plan.py`` compares them with
compiled blobs of several families, sizes, formats and platforms."""


_COSTS = {StageKind.PREFILL: 9, StageKind.GENERATE: 4, StageKind.HEAD: 1}
"""Approximate relative time to plan a static model."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """Predicted memory and speed of a model."""

    family: str
    decoder: Decoder
    parameters: int
    lengths: Lengths
    stages: tuple[StagePrediction, ...]
    weights: tuple[Item, ...]
    """Bytes by use; stored once for all static models, if blobs are without weights."""
    memory: tuple[Item, ...]
    """Device memory for everything except weights."""
    warnings: tuple[str, ...]
    """Reasons why the model would not run."""
    notes: tuple[str, ...] = ()
    """Reasons why weights are not stored in the requested format."""

    @property
    def total_bytes(self) -> int:
        """Total device memory."""
        return sum(item.nbytes for item in (*self.weights, *self.memory))

    @property
    def prefill(self) -> list[StagePrediction]:
        """Models that read a prompt of one conversation, ascending by tokens."""
        return [one for one in self._of(StageKind.PREFILL) if one.stage.slots == 1]

    @property
    def generate(self) -> list[StagePrediction]:
        """Variants that generate for one conversation, ascending."""
        return [one for one in self._of(StageKind.GENERATE) if one.stage.slots == 1]

    def head_seconds(self, tokens: int = 1) -> float:
        """Return the time of some tokens' logits; 0 if the LM head is not a separate model."""
        heads = (one for one in self._of(StageKind.HEAD) if one.stage.tokens >= tokens)
        return next((one.seconds for one in heads), 0.0)

    def tokens_per_s(self, one: StagePrediction) -> float:
        """Return the throughput of a static model; generate models include the LM head.

        The tokens of all its conversations count.
        """
        tokens = one.stage.slots * one.stage.tokens
        head = self.head_seconds(tokens) if one.stage.kind is StageKind.GENERATE else 0.0
        return tokens / (one.seconds + head)

    def ttft(self, prompt: int) -> float:
        """Return the seconds from a prompt of some tokens to the first token of the answer.

        Raises:
            OptionError: the prompt is too long for the prefill models.
        """
        return sum((one.seconds for one in self.chunks(prompt)), self.head_seconds(1))

    def chunks(self, prompt: int) -> list[StagePrediction]:
        """Return the models that read a prompt of some tokens, in order.

        Raises:
            OptionError: the prompt is too long for the prefill models.
        """
        if prompt > self.lengths.max_prompt:
            raise OptionError(f"prompt of {prompt} tokens; raise NPUW_LLM_MAX_PROMPT_LEN")
        by_stage = {one.stage: one for one in self.prefill}
        return [by_stage[stage] for stage in cheapest([*by_stage], prompt, 0)]

    def _of(self, kind: StageKind) -> list[StagePrediction]:
        return [one for one in self.stages if one.stage.kind is kind]


def plan_model(model: Path, options: Options, weights: Format | None) -> Prediction:
    """Predict memory and speed.

    Args:
        model: a Hugging Face folder, of which only ``config.json`` is read, or that file.
        options: options of the compilation.
        weights: quantisation of the matrices; None leaves them 16-bit floats.

    Raises:
        ModelError: no such model exists, its family is not supported (the families are listed), or
            the compiler would reject it.
        OptionError: options contradict one another, the platform is unknown, or a plan does not
            support an option.
    """
    from compiler_layer.frontends.huggingface.config import Config
    from compiler_layer.frontends.huggingface.sample import read_sample
    from compiler_layer.quantize.rewrite import quantize_shapes

    _check_foretold(options)
    planned = plan_stages(options)
    lengths = planned.lengths
    config = _config_of(model)
    with collected_later():
        try:
            sample = read_sample(config)
            parameters = count_parameters(sample)
            stored = (
                []
                if weights is None
                else quantize_shapes(sample.model, weights, sample.nowhere.place)
            )
            stages = _plan_stages(sample, planned, options)
        except CompilerError as error:
            raise ModelError(str(error)) from error
    found = weigh(sample)
    memory = _memory(sample.decoder, planned, stages, options)
    return Prediction(
        family=str(Config.read(config).values["model_type"]),
        decoder=sample.decoder,
        parameters=parameters,
        lengths=lengths,
        stages=stages,
        weights=tuple(found),
        memory=memory,
        warnings=tuple(_warnings(stages, [*found, *memory], options)),
        notes=tuple(_notes(stored)),
    )


def _config_of(model: Path) -> Path:
    with looking_at(model, ModelError):
        if not model.exists():
            raise ModelError(
                f"{model}: no such file or folder; pass a folder with the model's config.json "
                "(nothing is downloaded)"
            )
        config = model / "config.json" if model.is_dir() else model
        if not config.is_file():
            raise ModelError(f"{model}: has no config.json, from which a plan is computed")
    return config


def _check_foretold(options: Options) -> None:
    if options.weights_offload != "NO":
        raise OptionError(
            f"NPUW_WEIGHTS_OFFLOAD = {options.weights_offload}: plans assume that all weights are "
            "in device memory; leave it out"
        )
    for devices in {own.devices for own in options.of_stages} - {"NPU"}:
        raise OptionError(f"NPUW_DEVICES = {devices}: a plan supports only the NPU; leave it out")
    for hint in options.isolated_attention.values():
        raise OptionError(
            f"attention hint {hint}: the host's part depends on the conversation, and a plan does "
            "not predict it; use STATIC or PYRAMID"
        )
    if options.llm is False or options.use_npuw is False:
        raise OptionError(
            "a plan supports only language models that NPUW splits; leave NPUW_LLM and "
            "NPU_USE_NPUW out"
        )


def _notes(stored: Sequence[tuple[Weight, Scheme]]) -> Iterator[str]:
    """Yield notes on linear layers stored in another format; embeddings and LM heads always are."""
    reasons = dict.fromkeys(scheme.note for weight, scheme in stored if weight.role == "linear")
    for note in filter(None, reasons):
        yield f"some matrices keep {note}; another --group-size may divide their width"


def _plan_stages(sample: Sample, planned: Stages, options: Options) -> tuple[StagePrediction, ...]:
    def plan_one(stage: Stage) -> StagePrediction:
        try:
            return plan_stage(sample, stage, options)
        except CompilerError as error:
            raise ModelError(f"{stage.name} cannot be compiled: {error}") from error

    return tuple(map_forked(plan_one, planned.stages, lambda stage: _COSTS[stage.kind]))


def _memory(
    decoder: Decoder, planned: Stages, stages: tuple[StagePrediction, ...], options: Options
) -> tuple[Item, ...]:
    talks, size = planned.slots[-1], cache_size(decoder, options)
    shared = {*planned.batched, *planned.shared, *planned.heads} - {*planned.own_heads}
    tensors = sum(
        (one.tensor_bytes + new_row_bytes(size, one.stage, planned.lengths, options))
        * (1 if one.stage in shared else talks)
        for one in stages
    )
    caches = talks * size.nbytes(planned.lengths.total, kv_layout(options).block)
    constants = sum(one.whole.constant_bytes for one in stages)
    return (
        Item("K and V cache" if talks == 1 else f"K and V caches of {talks}", caches),
        Item("scratch", sum(one.scratch_bytes for one in stages)),
        Item("programs", sum(one.whole.blob_bytes for one in stages) - constants),
        Item("constants in programs", constants),
        Item("inputs, outputs", tensors),
    )


def _warnings(
    stages: tuple[StagePrediction, ...], everything: list[Item], options: Options
) -> Iterator[str]:
    """Yield a warning for each address range of the device that is too small."""
    from driver_layer.npu.memory import MemoryKind

    room = {kind: kind.value.end - kind.value.begin for kind in MemoryKind}
    lists, reach = sum(one.whole.fw_bytes for one in stages), room[MemoryKind.FW]
    if lists > reach:
        largest = max(stages, key=lambda one: one.whole.fw_bytes)
        yield (
            f"task lists of {lists >> 20:,} MiB exceed the {reach >> 20:,} MiB that the management "
            f"core can address; those of {largest.stage.name} take "
            f"{largest.whole.fw_bytes >> 20:,} MiB; {_advice(stages, options, reach)}"
        )
    total = sum(item.nbytes for item in everything)
    if total > room[MemoryKind.DMA]:
        yield (
            f"{total >> 30:,} GiB exceed the {room[MemoryKind.DMA] >> 30:,} GiB that DMA can "
            "address; use fewer bits per weight"
        )


def _advice(stages: tuple[StagePrediction, ...], options: Options, reach: int) -> str:
    """Return a remedy for too long task lists: the largest chunk that alone is estimated to fit."""
    chunk = 1 << (max(one.stage.tokens for one in stages).bit_length() - 2)
    while chunk >= SMALLEST_PREFILL:
        single = {"prefill_chunk_size": chunk, "prefill_pyramid": False}
        smaller = options.model_copy(update=single)
        about = sum(_task_bytes(stages, stage) for stage in plan_stages(smaller).stages)
        if about <= 1.1 * reach:  # smaller models have slightly shorter lists than estimated
            return (
                f"lower NPUW_LLM_PREFILL_CHUNK_SIZE to {chunk}, and set NPUW_LLM_PREFILL_PYRAMID "
                "to NO"
            )
        chunk >>= 1
    return "no NPUW_LLM_PREFILL_CHUNK_SIZE is small enough; use a smaller model"


def _task_bytes(stages: tuple[StagePrediction, ...], stage: Stage) -> float:
    """Estimate the size of a model's task lists, which grows with its tokens, by interpolation."""
    alike = [one for one in stages if one.stage.kind is stage.kind]
    tokens = sorted({one.stage.tokens for one in alike})
    sizes = [
        fmean(one.whole.fw_bytes for one in alike if one.stage.tokens == count) for count in tokens
    ]
    return float(np.interp(stage.tokens, [0, *tokens], [0, *sizes]))
