"""Prompts and parameters of ``ContinuousBatchingPipeline.generate``.

Source: openvino_genai.ContinuousBatchingPipeline, docs/reference/genai.md#continuous-batching.
Ours: token ids may be arrays and lists, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, cast

import numpy as np

from genai_layer.chat_history import ChatHistory
from genai_layer.errors import ConfigError, PromptError
from genai_layer.generation_config import GenerationConfig
from genai_layer.results import TokenizedInputs
from genai_layer.tensor import array_of
from genai_layer.token_ids import Ids, Row, prompts_ids

PromptIds = Ids | Row
"""Ids of one prompt, i64 [n] or [1, n]."""
Prompts = str | Sequence[str] | Sequence[ChatHistory] | Sequence[PromptIds]
Configs = GenerationConfig | Sequence[GenerationConfig]
T = TypeVar("T")


def read_call(
    prompts: object, configs: object
) -> tuple[list[str] | list[ChatHistory] | list[list[int]], list[GenerationConfig]]:
    """Return the prompts, which are of one kind, and the parameters of each.

    Args:
        prompts: texts, histories, or the ids of each prompt; or one text.
        configs: parameters of each prompt; or of the one text.

    Raises:
        ConfigError: there are not as many parameters as prompts.
        PromptError: there is no prompt, or prompts are of several kinds.
    """
    if isinstance(prompts, str) and isinstance(configs, GenerationConfig):
        return [prompts], [configs]
    parameters = _all(configs, GenerationConfig)
    if not parameters:
        raise ConfigError(
            f"generation_config = {configs!r}: pass a list of GenerationConfig, one for each prompt"
        )
    read = _of_one_kind(prompts)
    if len(read) != len(parameters):
        raise ConfigError(
            f"generation_config: {len(parameters)} for {len(read)} prompts; pass one for each"
        )
    return read, parameters


def ids_of(prompt: PromptIds) -> list[int]:
    """Return the ids of one prompt.

    Raises:
        PromptError: the ids are not i64 [n] or [1, n].
    """
    if isinstance(prompt, TokenizedInputs) or array_of(prompt).ndim != 1:
        rows = prompts_ids(cast(Ids, prompt))
    elif isinstance(prompt, list | tuple):
        rows = prompts_ids([cast(Row, prompt)])
    else:
        rows = prompts_ids(array_of(prompt)[np.newaxis])
    if len(rows) != 1:
        raise PromptError(f"token ids have {len(rows)} rows; pass one prompt for each row")
    return rows[0]


def _of_one_kind(prompts: object) -> list[str] | list[ChatHistory] | list[list[int]]:
    if not isinstance(prompts, list | tuple):
        raise PromptError(
            f"prompts are of type {type(prompts).__name__}, not a list; pass a list of prompts, "
            "or a text with one GenerationConfig"
        )
    listed = cast("Sequence[Any]", prompts)
    if not listed:
        raise PromptError("prompts: the list is empty; pass at least one prompt")
    if texts := _all(listed, str):
        return texts
    if histories := _all(listed, ChatHistory):
        return histories
    if any(isinstance(one, str | ChatHistory) for one in listed):
        raise PromptError("prompts are of several kinds; pass texts, token ids or histories")
    return [ids_of(one) for one in listed]


def _all(values: object, kind: type[T]) -> list[T]:
    """Return a list of values of a type; empty if there are none, or others."""
    if not isinstance(values, list | tuple):
        return []
    listed = cast("Sequence[object]", values)
    found = [one for one in listed if isinstance(one, kind)]
    return found if len(found) == len(listed) else []
