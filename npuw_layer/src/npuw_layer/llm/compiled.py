"""All static models of one LLM, ready to run."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from driver_layer.support.progress import report
from npuw_layer.backends.protocols import Device, LoadedModel, TensorInfo
from npuw_layer.errors import NoHead, NotCausal, OtherAxes
from npuw_layer.execution.dumps import dumped
from npuw_layer.execution.profiling.labels import labelled
from npuw_layer.llm.kv.prefix_cache import PrefixCache
from npuw_layer.llm.plan.ruled_out import check_ruled_out
from npuw_layer.llm.plan.stages import LLMPlan, Stage, lengths_of, plan
from npuw_layer.llm.programs import (
    BLOBS,
    COMPILING,
    ModelChange,
    ProgramMaker,
    blob_weights,
)
from npuw_layer.llm.trait import Instance
from npuw_layer.options import Options
from npuw_layer.storage.cache.model_digest import model_files
from npuw_layer.storage.container import MODEL
from npuw_layer.storage.model_blob.checks import exported
from npuw_layer.storage.model_blob.exported import Exported, write_model
from npuw_layer.storage.model_files import ModelFiles, WeightSources
from npuw_layer.storage.programs import Origin
from npuw_layer.tensors.names import vocabulary_of
from npuw_layer.tensors.token_inputs import TokenInput, token_inputs
from npuw_layer.tensors.token_outputs import TokenOutput, token_outputs
from npuw_layer.tensors.traits import traits
from npuw_layer.weights.bank import WeightsBank
from npuw_layer.weights.sharing.bank import share_bank

if TYPE_CHECKING:
    from npuw_layer.weights.sharing.arena import SharedArena

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CompiledLLM:
    """Loaded programs and weights of an LLM; conversations change neither.

    Conversations only fill the prefix cache, which they share.
    """

    device: Device
    options: Options
    plan: LLMPlan
    models: Mapping[Stage, LoadedModel]
    bank: WeightsBank
    traits: tuple[Instance, ...]
    """Traits of the model, in addition to K and V; empty for a plain Llama."""
    prefixes: PrefixCache | None
    origin: Origin
    programs: Mapping[Stage, bytes | memoryview]
    """Programs that were loaded, in the device's format."""
    sources: WeightSources
    """Places of the weights, and the state of the files at compilation."""
    shared: SharedArena | None
    """Weights shared with other processes."""

    @property
    def submodels(self) -> Mapping[str, LoadedModel]:
        """Static models by name."""
        return {stage.name: model for stage, model in self.models.items()}

    @property
    def token_inputs(self) -> tuple[TokenInput, ...]:
        """Inputs with a row for each new token."""
        return token_inputs(self._one.inputs)

    @property
    def vocabulary(self) -> int | None:
        """Number of token ids; None if the model takes no ids, or does not look them up."""
        return vocabulary_of(info.name for info in self._one.inputs)

    @property
    def token_outputs(self) -> tuple[TokenOutput, ...]:
        """Outputs with a row for each new token, other than logits."""
        return token_outputs(self._one.outputs)

    @property
    def _one(self) -> LoadedModel:
        """Any model that takes tokens; all have equal inputs and outputs that follow tokens."""
        return self.models[(self.plan.generate or self.plan.prefill)[0]]


def compile_llm(
    path: Path, device: Device, options: Options, change: ModelChange | None = None
) -> CompiledLLM:
    """Compile an LLM's programs, or load them from the cache.

    Args:
        path: an IR's ``.xml`` or a Hugging Face folder.
        device: device to run on.
        options: lengths, variants, precision, cache. If no head can be cut off, each model keeps
            its own, as in NPUW (docs/reference/npuw.md#lm-head). Unset axes of caches are
            read from the model.
        change: change of the model before it is split, or None.

    Raises:
        ModelError: the model cannot be read, adapted or split.
        RuntimeError: the compiler or the device rejects the model.
    """
    while True:
        try:
            return _compile_stages(path, device, options, change)
        except (NoHead, OtherAxes, NotCausal) as error:
            options = _yielding(options, error)


def _yielding(options: Options, error: NoHead | OtherAxes | NotCausal) -> Options:
    """Adjust options to a model, whose needs are known only after it was read.

    Raises:
        ModelError: the model cannot run as the options request.
    """
    if isinstance(error, OtherAxes):
        if {"batch_dim", "seq_len_dim"} & options.model_fields_set:
            raise error
        _log.info("%s", error)
        axes = {"batch_dim": error.sequences, "seq_len_dim": error.tokens}
        return options.model_copy(update=axes)
    if isinstance(error, NotCausal):
        chunked = lengths_of(options).chunk is not None
        if options.resumes_prefill or chunked or not options.reads_chunks:
            raise error
        _log.info("%s", error)
        return options.model_copy(update={"prefill_hint": "STATIC"})
    if not options.cuts_head:
        raise error
    _log.warning("NPUW_LLM_SHARED_HEAD: %s; each model keeps its own head", error)
    return options.model_copy(update={"shared_head": False})


def _compile_stages(
    path: Path, device: Device, options: Options, change: ModelChange | None
) -> CompiledLLM:
    """Compile an LLM; raises as ``compile_llm``, also NoHead, OtherAxes and NotCausal."""
    began = time.perf_counter()
    stages = plan(options).stages
    files = ModelFiles.look(model_files(path), path if path.is_dir() else path.parent)
    maker = ProgramMaker(path, files, device, options, change)
    loaded: list[LoadedModel] = []
    programs: list[bytes | memoryview] = []
    compiled = 0
    for number, stage in enumerate(stages, 1):
        obtained, model = maker.load(stage, f"{stage.name} ({number} of {len(stages)})")
        compiled += obtained.compiled
        programs.append(obtained.program)
        loaded.append(model)
    report(COMPILING, len(stages), len(stages), BLOBS)
    wanted = blob_weights(stages, loaded, options)
    stored = None if wanted is None else maker.weights(wanted)
    changes = "" if change is None else change.of_weights
    sources = WeightSources(files, stored, changes)
    origin = Origin(time.perf_counter() - began, compiled, len(stages) - compiled)
    _log.info("%s", origin)
    return assemble(device, options, loaded, programs, origin, sources)


def assemble(
    device: Device,
    options: Options,
    loaded: Sequence[LoadedModel],
    programs: Sequence[bytes | memoryview],
    origin: Origin,
    sources: WeightSources,
) -> CompiledLLM:
    """Assemble loaded stages into an LLM.

    Args:
        device: device of the stages.
        options: options that the stages were made with.
        loaded: stages in the order of the plan.
        programs: programs that were loaded, in the same order.
        origin: source of the programs.
        sources: places of the weights.

    Raises:
        ModelError: the model rules out an option.
    """
    planned = plan(options)
    models = {
        stage: labelled(
            dumped(model, stage.name, options.of_stage(stage.kind.value)), stage.name, options
        )
        for stage, model in zip(planned.stages, loaded, strict=True)
    }
    check_ruled_out(models, planned, options)
    bank = WeightsBank(device, sources.files.folder, sources.stored, sources.files.check)
    return CompiledLLM(
        device=device,
        options=options,
        plan=planned,
        models=models,
        bank=bank,
        traits=_instances(models, planned),
        prefixes=_prefixes(options),
        origin=origin,
        programs=dict(zip(planned.stages, programs, strict=True)),
        sources=sources,
        shared=share_bank(bank, loaded, sources.hashing(options.cache_folder), device, options),
    )


def _instances(models: Mapping[Stage, LoadedModel], planned: LLMPlan) -> tuple[Instance, ...]:
    """Return a model's traits, recognised by the inputs of one conversation's programs."""
    stages = (*(planned.generate or planned.prefill), *planned.prefill, *planned.own_heads)
    inputs = dict[str, TensorInfo]()
    for info in (info for stage in stages for info in models[stage].inputs):
        inputs.setdefault(info.name, info)
    found = (trait.recognise([*inputs.values()]) for trait in traits())
    return tuple(one for one in found if one is not None)


def _prefixes(options: Options) -> PrefixCache | None:
    if not options.enable_prefix_caching:
        return None
    block, longest = options.prefix_caching_block_size, lengths_of(options).max_prompt
    if block >= longest:
        _log.warning(
            "NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE: a prompt (%d tokens at most) is never longer "
            "than a block of %d: the prefix cache has no effect",
            longest,
            block,
        )
    return PrefixCache(
        options.prefix_caching_block_size,
        options.prefix_caching_max_num_blocks,
        options.prefix_caching_max_bytes or None,
    )


def export_llm(compiled: CompiledLLM, file: BinaryIO) -> None:
    """Write a compiled LLM to a stream.

    Raises:
        OptionError: the device's programs cannot be exported, or encryption fails.
        ModelError: the model's files have changed since compilation.
        OSError: the stream fails.
    """
    loaded, device, options = list(compiled.models.values()), compiled.device, compiled.options
    model = Exported(
        device=device,
        options=options,
        programs=[
            (stage.name, exported(device, options, program))
            for stage, program in compiled.programs.items()
        ],
        loaded=loaded,
        weights=blob_weights(compiled.plan.stages, loaded, options),
        bank=compiled.bank,
        sources=compiled.sources,
    )
    write_model(MODEL, model, file)
