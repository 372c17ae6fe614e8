"""Methods that sort their arguments at run time, asked with values that fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

import genai_layer
from compatibility.pairs import outcome
from genai_layer.batching import generate_call
from genai_layer.vision import generate_call as visual_call

_HISTORY = genai_layer.ChatHistory([{"role": "user", "content": "a"}])
_CONFIG = genai_layer.GenerationConfig()
_PICTURE, _FILM = np.zeros((2, 2, 3), np.uint8), np.zeros((1, 2, 2, 3), np.uint8)
_IDS = np.array([[1, 2]])
_OF_ONE: dict[str, Any] = {
    "prompt": "a",
    "history": _HISTORY,
    "input_ids": _IDS,
    "image": _PICTURE,
    "images": [_PICTURE],
    "videos": [_FILM],
    "generation_config": _CONFIG,
    "streamer": print,
}
_OF_SEVERAL: dict[str, Any] = {
    "prompts": ["a"],
    "histories": [_HISTORY],
    "input_ids": [_IDS],
    "images": [[_PICTURE]],
    "videos": [[_FILM]],
    "generation_config": [_CONFIG],
    "streamer": print,
}
_BATCHING = "ContinuousBatchingPipeline"
READERS: dict[str, Callable[[Sequence[Any], Mapping[str, Any]], Any]] = {
    f"{_BATCHING}.add_request": generate_call.read_request,
    f"{_BATCHING}.generate": generate_call.read_call,
    "VLMPipeline.generate": visual_call.read_call,
}
"""Functions that sort the arguments of methods, after the number of a request."""


def is_read(path: str, names: Sequence[str]) -> bool:
    """Return whether a method sorts arguments with these names, by place and by name."""
    several = path == f"{_BATCHING}.generate" and "prompt" not in names
    values = _OF_SEVERAL if several else _OF_ONE
    named = {name: values[name] for name in names if name != "request_id"}
    calls = partial(READERS[path], [*named.values()], {}), partial(READERS[path], [], named)
    return not any(isinstance(outcome(call), Exception) for call in calls)
