"""Draft model of a pipeline: its description, and its opening.

Source: openvino_genai.draft_model, docs/reference/genai.md#speculative-decoding.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from genai_layer.checked import checked
from genai_layer.decoding.stored_tokens import StoredTokens
from genai_layer.errors import ModelError, PropertyError, runtime_failures
from genai_layer.model_folder import find_model, read_tokenizer
from genai_layer.model_kinds import check_reader
from genai_layer.npu import OnFull, StaticLengths, npu_properties
from genai_layer.properties import for_device, read_properties, take_mechanisms
from genai_layer.runtime import CompiledModel, Core
from genai_layer.runtimes import load_core
from genai_layer.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class DraftModel:
    """Draft model to open; made by ``draft_model``."""

    folder: Path
    device: str
    core: Core | None
    properties: Mapping[str, Any]


@checked
def draft_model(
    models_path: str | bytes | os.PathLike[str],
    device: str = "",
    *,
    core: Core | None = None,
    **properties: Any,
) -> DraftModel:
    """Describe a draft model, to be passed to LLMPipeline as ``draft_model``.

    Args:
        models_path: its folder; its tokenizer must have the vocabulary of the pipeline's.
        device: e.g. "NPU" or "CPU"; empty for the pipeline's.
        core: a runtime, instead of the device's.
        properties: properties of the draft model; without any, the pipeline's if the devices are
            equal.
    """
    return DraftModel(Path(os.fsdecode(models_path)), device, core, dict(properties))


@dataclass(frozen=True, slots=True)
class Place:
    """Surroundings of a draft model: those of its pipeline."""

    device: str
    properties: Mapping[str, Any]
    """Properties that the pipeline was created with."""
    core: Core
    tokenizer: Tokenizer


@dataclass(frozen=True, slots=True)
class OpenDraft:
    """Draft model on its device."""

    compiled: CompiledModel
    device: str
    lengths: StaticLengths | None
    """Lengths on an NPU; None elsewhere."""

    def new_request(self) -> StoredTokens:
        """Create a request.

        Raises:
            RuntimeFailure: the runtime failed.
        """
        with runtime_failures("draft_model"):
            request = self.compiled.create_infer_request()
        return StoredTokens(request, self.compiled, self.lengths)


def _inherited(place: Place) -> dict[str, Any]:
    """Return the pipeline's properties without its blob, which the draft's would replace."""
    return {
        name: value
        for name, value in place.properties.items()
        if name not in ("BLOB_PATH", "EXPORT_BLOB")
    }


def open_draft(given: DraftModel, place: Place) -> OpenDraft:
    """Compile a draft model.

    Raises:
        ModelError: the folder lacks a file, or its vocabulary is not the pipeline's.
        PropertyError: a property or the device is unknown, or would make the draft forget tokens.
        RuntimeFailure: the runtime cannot compile the model.
    """
    check_reader(given.folder, "LLMPipeline")
    device = given.device or place.device
    inherits = device == place.device
    chosen = for_device(given.properties or (_inherited(place) if inherits else {}), device)
    take_mechanisms(chosen, device)
    properties = read_properties(chosen)
    if read_tokenizer(given.folder).get_vocab() != place.tokenizer.get_vocab():
        raise ModelError(
            f"draft_model: the vocabulary of {given.folder} is not the pipeline's; use a draft "
            "model with the same tokenizer"
        )
    lengths = None
    if device == "NPU":
        if properties.get("BLOB_PATH"):
            raise PropertyError("draft_model: BLOB_PATH is not supported; set CACHE_DIR instead")
        if properties.get("NPUW_LLM_ON_FULL", OnFull.ERROR) != OnFull.ERROR:
            raise PropertyError("draft_model: NPUW_LLM_ON_FULL must be ERROR; leave it out")
        properties, lengths = npu_properties(properties)
    core = given.core or (place.core if inherits else load_core(device))
    with runtime_failures("draft_model"):
        compiled = core.compile_model(find_model(given.folder), device, properties)
        return OpenDraft(compiled, device, lengths)
