"""Programs of an LLM's stages, compiled or loaded from the cache."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from driver_layer.support.progress import report
from npuw_layer.backends.mapped import drop_pages
from npuw_layer.backends.protocols import (
    SUBMODEL,
    Device,
    FindsConstants,
    LoadedModel,
    MovesOn,
    ability,
    device_of,
)
from npuw_layer.errors import ModelError, NotFolded, NpuwUsageError
from npuw_layer.llm.imported_ports import check_ports
from npuw_layer.llm.language_kind import kind_of
from npuw_layer.llm.plan.stage_key import stage_key, stage_versions
from npuw_layer.llm.plan.stages import Stage, StageKind, plan
from npuw_layer.options import Options
from npuw_layer.storage.cache.blob_cache import BlobCache, Obtained, Refused
from npuw_layer.storage.cache.key import CacheKey, current_versions, weights_key
from npuw_layer.storage.cache.model_digest import digest_model
from npuw_layer.storage.model_files import ModelFiles
from npuw_layer.storage.programs import constants_of, load
from npuw_layer.weights.bank import WeightsBank
from npuw_layer.weights.stored_weights import PART, StoredWeights, WantedWeights

if TYPE_CHECKING:
    from compiler_layer.model import Model

_log = logging.getLogger(__name__)

COMPILING, BLOBS = "compiling", "blobs"
"""Activity and unit of the progress that is reported before each blob."""


class ModelChange(Protocol):
    """A change of a model before it is split, e.g. inserted adapters."""

    @property
    def digest(self) -> str:
        """Identity of the change."""
        ...

    @property
    def of_weights(self) -> str:
        """Identity of the change of weights; empty if weights stay."""
        ...

    def apply(self, model: Model) -> None:
        """Change the model in place.

        Raises:
            ModelError: the change does not fit the model.
        """
        ...


class ProgramMaker:
    """Compiler of one model's stages; takes programs from CACHE_DIR where it can.

    Args:
        path: an IR's ``.xml`` or a Hugging Face folder; read only to compile.
        files: files of the model, with their state before anything was read.
        device: device to compile for.
        options: precision, variants, cache.
        change: change of the model before it is split, or None.

    Raises:
        NpuwFault: the cache's folder cannot be created.
    """

    def __init__(
        self,
        path: Path,
        files: ModelFiles,
        device: Device,
        options: Options,
        change: ModelChange | None = None,
    ) -> None:
        self._path = path
        self._change = change
        self._files = files
        self._device = device
        self._options = options
        self._stages = plan(options).stages
        self._foldings: dict[int, Iterator[Model]] = {}
        """Graphs that stand for the model on each device, from the smallest to all layers."""
        self._smallest: dict[int, Model] = {}
        """The smallest graph that each device has not refused."""
        self._checked: set[tuple[StageKind, bool]] = set()
        """Stages already checked for values that follow padded lengths, by kind and whether they
        read stored tokens; one stage represents all such stages."""
        self._folder = folder = options.cache_folder
        self._cache = (
            None
            if folder is None
            else BlobCache(folder, partial(constants_of, device), options.encryption)
        )

    def load(self, stage: Stage, label: str) -> tuple[Obtained, LoadedModel]:
        """Obtain a stage's program and load it; a cached program that fails to load is replaced.

        Args:
            stage: stage to load.
            label: name of the stage in the log.

        Raises:
            ModelError: the model cannot be read or split.
            RuntimeError: the compiler or the device rejects the program.
        """
        obtained = self._obtain(stage, label, None)
        try:
            loaded = load(self._of(stage), obtained.program)
            moved = ability(loaded, MovesOn)
            why = "" if moved is None else moved.refusal
            if obtained.entry is not None and ability(self._device, FindsConstants):
                check_ports([stage], [loaded], self._options)
        except NpuwUsageError:
            raise  # a recompiled program would fail, too
        except RuntimeError as error:
            if obtained.entry is None:
                raise
            why = str(error)
        else:
            if not why or obtained.entry is None:
                return obtained, loaded
        obtained = self._obtain(stage, label, Refused(obtained.entry, why))
        return obtained, load(self._of(stage), obtained.program)

    def _obtain(self, stage: Stage, label: str, refused: Refused | None) -> Obtained:
        """Compile a stage, or find its program in the cache."""
        began = time.perf_counter()
        if self._cache is None:
            _log.info("%s: compiling: CACHE_DIR is not set", label)
            obtained = Obtained(self._compile(stage), True, "compiled")
        else:
            make = partial(self._compile, stage)
            obtained = self._cache.obtain(label, self._key(stage), make, refused)
        _log.info("%s: %s in %.2f s", label, obtained.how, time.perf_counter() - began)
        return obtained

    def _compile(self, stage: Stage) -> bytes:
        """Split the model and compile a stage.

        Raises:
            ModelError: the model's files changed meanwhile; the digest is of the old ones.
        """
        report(COMPILING, self._stages.index(stage), len(self._stages), BLOBS)
        program = self._compiled(stage)
        self._files.check(self._files.statuses)
        return program

    def _gather(self, wanted: WantedWeights) -> memoryview:
        """Read weights; errors as ``_compile``."""
        content = wanted.gather(WeightsBank(self._device, self._files.folder).read)
        self._files.check(self._files.statuses)
        return content

    def _compiled(self, stage: Stage) -> bytes:
        options, device = self._options.of_stage(stage.kind.value), self._of(stage)
        while True:
            model = self._folded(device) if options.fold else self._whole
            try:
                like = stage.kind, stage.past > 0
                graph = kind_of(self._options).graph(
                    model, stage, self._options, like not in self._checked
                )
                self._checked.add(like)
                config = {
                    **options.compiler_config(),
                    **options.experts_config(stage.kind.value),
                    SUBMODEL: stage.name,
                }
                return device.compile(graph, config)
            except NotFolded as error:
                _log.info("%s; with more layers", error)
                del self._smallest[id(device)]
            except ModelError as error:
                if stage.slots == 1:
                    raise
                raise ModelError(
                    f"{stage.slots} conversations in one batch: {error}; set NPUW_LLM_BATCH_SLOTS "
                    "= 1 to run them in turn"
                ) from error

    def _folded(self, device: Device) -> Model:
        """Return the smallest graph that stands for the model, which the device has not refused."""
        key = id(device)
        if key not in self._smallest:
            if key not in self._foldings:
                self._foldings[key] = device.foldings(self._whole)
            self._smallest[key] = next(self._foldings[key])
        return self._smallest[key]

    def _of(self, stage: Stage) -> Device:
        return device_of(self._device, stage.kind.value)

    @cached_property
    def _whole(self) -> Model:
        # Imported here: a warm start reads no model, so it need not import the reader.
        from npuw_layer.storage.read_model import read_model

        model = read_model(self._path)
        if self._change is not None:
            self._change.apply(model)
        return kind_of(self._options).prepared(model, self._options)

    def _key(self, stage: Stage) -> CacheKey:
        key = stage_key(self._digest, stage, self._versions_of[stage.kind], self._options)
        if self._change is not None:
            key = CacheKey({**key.parts, "adapters": self._change.digest})
        if ability(self._device, FindsConstants):
            return key
        return CacheKey({**key.parts, "place": str(self._path.resolve())})

    def weights(self, wanted: WantedWeights) -> StoredWeights | None:
        """Obtain converted weights from the cache, or fill it; None without CACHE_DIR.

        Raises:
            ModelError: the weights cannot be read from the model's files.
        """
        if self._folder is None:
            return None
        cache = BlobCache(self._folder, lambda _: wanted.spans, self._options.encryption)
        key = weights_key(self._digest, wanted.digest, self._versions)
        make = partial(self._gather, wanted)
        obtained, stored = cache.load(
            PART, key, make, lambda content: StoredWeights(memoryview(content), wanted.layout)
        )
        if obtained.entry is not None:
            drop_pages(obtained.program)
        return stored

    @cached_property
    def _digest(self) -> str:
        return digest_model(self._path, self._folder)

    @cached_property
    def _versions_of(self) -> dict[StageKind, dict[str, str]]:
        device, options = self._device, self._options
        return {kind: stage_versions(device, options, kind.value) for kind in StageKind}

    @cached_property
    def _versions(self) -> dict[str, str]:
        return current_versions(self._device, self._options)


def blob_weights(
    stages: Sequence[Stage], loaded: Sequence[LoadedModel], options: Options
) -> WantedWeights | None:
    """Return the weights of stages whose blobs contain weights; None if there are none.

    Raises:
        BlobError: an input of a program is not the weight that its name states.
    """
    return WantedWeights.of(
        info
        for stage, program in zip(stages, loaded, strict=True)
        if not options.of_stage(stage.kind.value).weightless
        for info in program.inputs
    )
