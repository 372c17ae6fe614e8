"""Compiled model of a pipeline, and how many sequences run at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from genai_layer.batching.places import Places
from genai_layer.decoding.generated_sequence import Limits
from genai_layer.decoding.truncation import Truncation
from genai_layer.errors import PromptTooLong, runtime_failures
from genai_layer.generation_config import GenerationConfig
from genai_layer.model_folder import find_model
from genai_layer.npu import StaticLengths, imports_blob, npu_properties, settled_lengths
from genai_layer.prompt import Prompt
from genai_layer.prompt_limits import fitted, limits_of, truncation_of
from genai_layer.properties import read_properties
from genai_layer.runtime import Core
from genai_layer.scheduler import SchedulerConfig

MOST_SLOTS = 8
"""Most sequences that run at a time on NPU. Each has the memory of a whole conversation, and
NPUW_LLM_BATCH_SLOTS compiles generate models for as many."""

_BLOCK = 32
"""Tokens of a KV block (docs/reference/genai.md#continuous-batching)."""


@dataclass(frozen=True, slots=True)
class BatchedModel:
    """Compiled model, with the scheduler's limits."""

    places: Places
    lengths: StaticLengths | None
    """Lengths of an NPU's programs; None on other devices."""
    blocks: int
    """KV blocks of a request; 0 for no limit."""

    def fitted(self, prompt: Prompt) -> Prompt:
        """Return a prompt without the turns that there is no room for; see ``fitted``."""
        return fitted(prompt, self.lengths)

    def truncation(self, prompt: Prompt, config: GenerationConfig) -> Truncation | None:
        """Return the rule for a full cache; see ``truncation_of``."""
        return truncation_of(prompt, config, self.lengths)

    def limits(self, ids: list[int], config: GenerationConfig, vocabulary: int) -> Limits:
        """Check a prompt, and return the limits of its generation; see ``limits_of``.

        Raises:
            PromptError: the prompt is empty or too long, or has an unknown id.
            ConfigError: max_length leaves no room for a token.
        """
        limits = limits_of(ids, config, vocabulary, self.lengths)
        if not self.blocks:
            return limits
        # The last token is generated, but never stored.
        room = self.blocks * _BLOCK + 1 - len(ids)
        if room < 1:
            raise PromptTooLong(
                f"num_kv_blocks = {self.blocks} store {self.blocks * _BLOCK} tokens: the prompt "
                f"has {len(ids)}; raise num_kv_blocks, or shorten the prompt"
            )
        return replace(limits, capacity=min(limits.capacity, room))


def compile_batched(
    core: Core,
    folder: Path,
    device: str,
    properties: dict[str, Any],
    scheduler: SchedulerConfig,
    step: int = 1,
) -> BatchedModel:
    """Compile a model of a folder.

    Args:
        core: the runtime.
        folder: the model's folder.
        device: the device.
        properties: of the runtime.
        scheduler: settings.
        step: tokens of a generate step; with several, requests have rows of their own.

    Raises:
        ModelError: the folder has no model.
        PropertyError: a property is unknown or wrong.
        RuntimeFailure: the runtime cannot compile the model.
    """
    properties = read_properties(properties)
    npu, count, lengths = device == "NPU", scheduler.max_num_seqs, None
    imported = npu and imports_blob(properties)
    model = find_model(folder, needed=not imported)
    if npu:
        count = min(count, MOST_SLOTS)
        # A blob was compiled for a number of slots.
        defaults = {} if imported else scheduler_options(scheduler, step)
        properties, lengths = npu_properties(defaults | properties, step)
    with runtime_failures():
        compiled = core.compile_model(model, device, properties)
        lengths = settled_lengths(compiled, lengths, imported)
        places = Places(compiled, count, lengths, batches=step == 1)
        return BatchedModel(places, lengths, scheduler.num_kv_blocks)


def scheduler_options(scheduler: SchedulerConfig, step: int) -> dict[str, Any]:
    """Return NPUW's options for settings of the scheduler.

    Args:
        scheduler: the settings.
        step: tokens of a generate step; with several, there are no slots.
    """
    options: dict[str, Any] = {}
    count = min(scheduler.max_num_seqs, MOST_SLOTS)
    if count > 1 and step == 1:
        options["NPUW_LLM_BATCH_SLOTS"] = f"1,{count}"
    if scheduler.enable_prefix_caching:
        options["NPUW_LLM_ENABLE_PREFIX_CACHING"] = "YES"
    return options
