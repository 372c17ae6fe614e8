"""All static models of one LLM, ready to run."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from npuw_layer.blob.source import drop_pages
from npuw_layer.cache.model_digest import model_files
from npuw_layer.llm.lengths import Lengths
from npuw_layer.llm.model_files import ModelFiles
from npuw_layer.llm.programs import Origin, ProgramMaker, StageProgram
from npuw_layer.llm.stages import plan, plan_stages
from npuw_layer.options import Options
from npuw_layer.ports import Device, LoadedModel
from npuw_layer.weights_bank import WeightsBank

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CompiledLLM:
    """The loaded programs of an LLM and its weights; conversations change nothing here."""

    device: Device
    lengths: Lengths
    capacities: tuple[int, ...]
    prefill: LoadedModel
    generate: tuple[LoadedModel, ...]
    bank: WeightsBank
    origin: Origin
    programs: tuple[StageProgram, ...]
    """What was loaded, in the order of ``plan_stages``."""
    files: ModelFiles
    """Where the weights are, and how the files were when this was compiled."""


def compile_llm(path: Path, device: Device, options: Options) -> CompiledLLM:
    """Compile, or load from the cache, what an LLM needs.

    Args:
        path: an IR's ``.xml`` or a Hugging Face folder.
        device: where it will run.
        options: lengths, variants, precision, cache.

    Raises:
        ModelError: the model cannot be read or split.
        RuntimeError: the compiler or the device refuses it.
    """
    began = time.perf_counter()
    stages = list(plan_stages(*plan(options)))
    files = ModelFiles.look(model_files(path), path if path.is_dir() else path.parent)
    maker = ProgramMaker(path, device, options)
    loaded: list[LoadedModel] = []
    programs: list[StageProgram] = []
    compiled = 0
    for number, stage in enumerate(stages, 1):
        obtained = maker.obtain(stage, f"{stage.name} ({number} of {len(stages)})")
        compiled += obtained.compiled
        programs.append(StageProgram(stage, obtained.program))
        loaded.append(load(device, obtained.program))
    origin = Origin(time.perf_counter() - began, compiled, len(stages) - compiled)
    _log.info("%s", origin)
    return assemble(device, options, loaded, programs, origin, files)


def load(device: Device, program: bytes | memoryview) -> LoadedModel:
    """Load a program; of one that is mapped nothing stays in memory but what runs."""
    loaded = device.load(program)
    drop_pages(program)
    return loaded


def assemble(
    device: Device,
    options: Options,
    loaded: Sequence[LoadedModel],
    programs: Iterable[StageProgram],
    origin: Origin,
    files: ModelFiles,
) -> CompiledLLM:
    """Put loaded stages together.

    Args:
        device: where they are.
        options: what they were made with.
        loaded: in the order of ``plan_stages``.
        programs: what was loaded.
        origin: where they came from.
        files: those that have the weights.
    """
    lengths, capacities = plan(options)
    prefill, *generate = loaded
    return CompiledLLM(
        device,
        lengths,
        tuple(capacities),
        prefill,
        tuple(generate),
        WeightsBank(device, files.folder),
        origin,
        tuple(programs),
        files,
    )
