"""All static models of one LLM, ready to run."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import READ_PREFIX, Device, LoadedModel, TensorInfo
from npuw_layer.errors import ModelError, NoHead, OtherAxes
from npuw_layer.execution.dumps import dumped
from npuw_layer.execution.profiling.labels import labelled
from npuw_layer.llm.kv.prefix_cache import PrefixCache
from npuw_layer.llm.model_files import ModelFiles, WeightSources
from npuw_layer.llm.names import LAST_HIDDEN_STATE, vocabulary_of
from npuw_layer.llm.plan.ruled_out import check_ruled_out
from npuw_layer.llm.plan.stages import Plan, Stage, lengths_of, plan
from npuw_layer.llm.programs import (
    GraphMaker,
    Origin,
    ProgramMaker,
    StageProgram,
    blob_weights,
    language_model_graph,
)
from npuw_layer.llm.request.token_inputs import TokenInput, token_inputs
from npuw_layer.llm.request.token_outputs import TokenOutput, token_outputs
from npuw_layer.options import Options
from npuw_layer.storage.cache.model_digest import model_files
from npuw_layer.traits.linear_states.names import linear_inputs
from npuw_layer.traits.lora.names import adapter_inputs
from npuw_layer.traits.trees.tree_mask import TreeMask
from npuw_layer.weights.bank import WeightsBank
from npuw_layer.weights.sharing.bank import share_bank

if TYPE_CHECKING:
    from npuw_layer.traits.lora.adaptation import Adaptation
    from npuw_layer.weights.sharing.arena import SharedArena

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CompiledLLM:
    """The loaded programs of an LLM and its weights; conversations change nothing here.

    They do fill the prefix cache, which is theirs in common.
    """

    device: Device
    options: Options
    plan: Plan
    models: Mapping[Stage, LoadedModel]
    bank: WeightsBank
    prefixes: PrefixCache | None
    origin: Origin
    programs: tuple[StageProgram, ...]
    """What was loaded, in the order of the plan's stages."""
    sources: WeightSources
    """Where the weights are, and how the files were when this was compiled."""
    shared: SharedArena | None
    """The weights that other processes use too."""

    @property
    def submodels(self) -> Mapping[str, LoadedModel]:
        """The static models by name."""
        return {stage.name: model for stage, model in self.models.items()}

    @property
    def token_inputs(self) -> tuple[TokenInput, ...]:
        """What the model wants of each new token."""
        return token_inputs(self._one.inputs)

    @property
    def vocabulary(self) -> int | None:
        """How many token ids there are; None if it takes none, or does not look them up."""
        return vocabulary_of(info.name for info in self._one.inputs)

    @property
    def token_outputs(self) -> tuple[TokenOutput, ...]:
        """What it gives of each new token beside logits."""
        return token_outputs(self._one.outputs)

    @property
    def tree_mask(self) -> TreeMask | None:
        """What it is told of candidates; None if it takes no trees of them."""
        return TreeMask.of(self._one.inputs)

    @property
    def _one(self) -> LoadedModel:
        """Any model that takes tokens: as to what they are given as, and give, all are alike."""
        return self.models[(self.plan.generate or self.plan.prefill)[0]]

    @property
    def adapters(self) -> list[TensorInfo]:
        """The inputs that adapters of a conversation come in by, each once."""
        own = (*(self.plan.generate or self.plan.prefill), *self.plan.own_heads)
        return adapter_inputs(self.models[stage].inputs for stage in own)

    @property
    def linear_caches(self) -> list[TensorInfo]:
        """The inputs that read states of fixed size, each variable once."""
        return linear_inputs(self._one.inputs)

    @property
    def adapter_shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the variables of adapters, at the largest rank."""
        return {info.name.removeprefix(READ_PREFIX): info.shape for info in self.adapters}


def compile_llm(
    path: Path,
    device: Device,
    options: Options,
    adaptation: Adaptation | None = None,
    make_graph: GraphMaker = language_model_graph,
) -> CompiledLLM:
    """Compile, or load from the cache, what an LLM needs.

    Args:
        path: an IR's ``.xml`` or a Hugging Face folder.
        device: where it will run.
        options: lengths, variants, precision, cache. Where no head can be cut off, each model keeps
            its own, as in the original (fact sheet npuw §a.3, step 5); axes of caches that are left
            out are the model's.
        adaptation: the adapters that it is compiled with, if there are any.
        make_graph: makes the static graph of a stage.

    Raises:
        ModelError: the model cannot be read, adapted or split.
        RuntimeError: the compiler or the device refuses it.
    """
    while True:
        try:
            return _compile_stages(path, device, options, adaptation, make_graph)
        except (NoHead, OtherAxes) as error:
            options = _yielding(options, error)


def _yielding(options: Options, error: NoHead | OtherAxes) -> Options:
    """The options that a model can have, which is known only once it is read.

    Raises:
        ModelError: it cannot have what was asked for.
    """
    if isinstance(error, OtherAxes):
        if {"batch_dim", "seq_len_dim"} & options.model_fields_set:
            raise error
        _log.info("%s", error)
        axes = {"batch_dim": error.sequences, "seq_len_dim": error.tokens}
        return options.model_copy(update=axes)
    if not options.cuts_head:
        raise error
    _log.warning("NPUW_LLM_SHARED_HEAD: %s; each model keeps what makes them", error)
    return options.model_copy(update={"shared_head": False})


def _compile_stages(
    path: Path,
    device: Device,
    options: Options,
    adaptation: Adaptation | None,
    make_graph: GraphMaker,
) -> CompiledLLM:
    """Compile an LLM; errors as ``compile_llm``, NoHead and OtherAxes."""
    began = time.perf_counter()
    stages = plan(options).stages
    files = ModelFiles.look(model_files(path), path if path.is_dir() else path.parent)
    maker = ProgramMaker(path, files, device, options, adaptation, make_graph)
    loaded: list[LoadedModel] = []
    programs: list[StageProgram] = []
    compiled = 0
    for number, stage in enumerate(stages, 1):
        obtained, model = maker.load(stage, f"{stage.name} ({number} of {len(stages)})")
        compiled += obtained.compiled
        programs.append(StageProgram(stage, obtained.program))
        loaded.append(model)
    wanted = blob_weights(stages, loaded, options)
    stored = None if wanted is None else maker.weights(wanted)
    changes = "" if adaptation is None else adaptation.of_weights
    sources = WeightSources(files, stored, changes)
    origin = Origin(time.perf_counter() - began, compiled, len(stages) - compiled)
    _log.info("%s", origin)
    return assemble(device, options, loaded, programs, origin, sources)


def assemble(
    device: Device,
    options: Options,
    loaded: Sequence[LoadedModel],
    programs: Sequence[StageProgram],
    origin: Origin,
    sources: WeightSources,
) -> CompiledLLM:
    """Put loaded stages together.

    Args:
        device: where they are.
        options: what they were made with.
        loaded: in the order of the plan's stages.
        programs: what was loaded.
        origin: where they came from.
        sources: where the weights are.

    Raises:
        ModelError: the model rules out what options ask for.
    """
    if options.eagle:
        _check_eagle(loaded[0])
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
        prefixes=_prefixes(options),
        origin=origin,
        programs=tuple(programs),
        sources=sources,
        shared=share_bank(bank, loaded, sources, device, options),
    )


def _check_eagle(prefill: LoadedModel) -> None:
    """See that a model is Eagle's, as it is said to be.

    Raises:
        ModelError: it gives no hidden states.
    """
    if all(info.name != LAST_HIDDEN_STATE for info in prefill.outputs):
        raise ModelError(
            f"NPUW_EAGLE = YES: the model has no output {LAST_HIDDEN_STATE}, which targets and "
            "drafts of Eagle 3 have; leave the option out"
        )


def _prefixes(options: Options) -> PrefixCache | None:
    if not options.enable_prefix_caching:
        return None
    block, longest = options.prefix_caching_block_size, lengths_of(options).max_prompt
    if block >= longest:
        _log.warning(
            "NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE: no prompt (%d tokens at most) goes on behind a "
            "block of %d: nothing is taken from the prefix cache",
            longest,
            block,
        )
    return PrefixCache(
        options.prefix_caching_block_size,
        options.prefix_caching_max_num_blocks,
        options.prefix_caching_max_bytes or None,
    )
