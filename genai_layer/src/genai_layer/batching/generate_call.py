"""Prompts, images and videos, and parameters of ``ContinuousBatchingPipeline.generate``.

Source: openvino_genai.ContinuousBatchingPipeline, docs/reference/genai.md#continuous-batching.
Ours: token ids may be arrays and lists, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import numpy as np

from genai_layer.chat_history import ChatHistory
from genai_layer.checked import read_named
from genai_layer.errors import ConfigError, PromptError
from genai_layer.generation_config import GenerationConfig
from genai_layer.results import TokenizedInputs
from genai_layer.sinks import Streamer
from genai_layer.tensor import array_of
from genai_layer.token_ids import Ids, Row, prompts_ids
from genai_layer.vision.visuals import Image, Video, read_images, read_videos

NAMES = ("images", "videos", "videos_metadata")


@dataclass(frozen=True, slots=True)
class Media:
    """Images and videos of one prompt."""

    images: list[Image] = field(default_factory=list[Image])
    videos: list[Video] = field(default_factory=list[Video])


def read_media(named: Mapping[str, Any]) -> Media | None:
    """Return the images and videos of one prompt; None if there are no lists of them.

    Args:
        named: lists of tensors ``images`` and ``videos``, and ``videos_metadata``; any may miss.

    Raises:
        PromptError: a tensor is no image or video, or the metadata do not match the videos.
    """
    if all(named.get(name) is None for name in NAMES):
        return None
    videos = read_videos(named.get("videos"), named.get("videos_metadata"))
    return Media(read_images(named.get("images")), videos)


def read_media_of_all(named: Mapping[str, Any], prompts: int) -> list[Media] | list[None]:
    """Return the images and videos of several prompts; None for each if there are no lists.

    Args:
        named: as for ``read_media``, but with a list for each prompt.
        prompts: number of the prompts.

    Raises:
        PromptError: see ``read_media``; or there are not as many lists as prompts.
    """
    if all(named.get(name) is None for name in NAMES):
        return [None] * prompts
    given: dict[str, Sequence[Any]] = {}
    for name in NAMES:
        value = named.get(name)
        lists = [()] * prompts if value is None or len(value) == 0 else value
        if len(lists) != prompts:
            raise PromptError(
                f"{name}: {len(lists)} lists for {prompts} prompts; pass one for each"
            )
        given[name] = lists
    media: list[Media] = []
    for number in range(prompts):
        one = read_media({name: lists[number] for name, lists in given.items()})
        media.append(one or Media())
    return media


_PROMPTS = ("prompts", "prompt", "input_ids", "histories")
_PAIR = 2

PromptIds = Ids | Row
"""Ids of one prompt, i64 [n] or [1, n]."""
Prompts = str | Sequence[str] | Sequence[ChatHistory] | Sequence[PromptIds]
Configs = GenerationConfig | Sequence[GenerationConfig]
_REQUEST: dict[str, Any] = {
    **dict.fromkeys(("prompts", "prompt", "input_ids"), str | PromptIds),
    "generation_config": GenerationConfig,
}
_CALL: dict[str, Any] = {
    **dict.fromkeys(_PROMPTS, Prompts),
    **dict.fromkeys(NAMES, Sequence[Any]),
    "generation_config": Configs,
    "streamer": Streamer,
}
"""Annotations of arguments by name."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GenerateCall:
    """Arguments of one call of ``generate``."""

    prompts: list[str] | list[ChatHistory] | list[list[int]]
    """Prompts, which are of one kind."""
    media: list[Media] | list[None]
    """Images and videos of each prompt; None if there are no lists of them."""
    configs: list[GenerationConfig]
    """Parameters of each prompt."""
    streamer: Streamer


def read_call(args: Sequence[Any], named: Mapping[str, Any]) -> GenerateCall:
    """Sort the arguments of ``generate``.

    Args:
        args: prompts (texts, histories, or the ids of each; or one text), images, videos,
            parameters of each prompt, streamer; images and videos may be left out.
        named: the same by name, also as ``prompt``, ``input_ids`` or ``histories``.

    Raises:
        TypeError: an argument is unknown or given twice, or there are too many.
        ConfigError: there are not as many parameters as prompts.
        PromptError: there is no prompt, prompts are of several kinds, or media do not match them.
    """
    given = by_name("generate", args, named, ("generation_config", "streamer"))
    unknown = given.keys() - {*_PROMPTS, *NAMES, "generation_config", "streamer"}
    if unknown:
        raise TypeError(f"generate() got an unexpected argument {min(unknown)!r}")
    given = _read("generate", given, _CALL)
    prompts = [given[name] for name in _PROMPTS if given.get(name) is not None]
    if len(prompts) != 1:
        raise TypeError("generate: pass one of prompts, prompt, input_ids and histories")
    inputs, configs = _read_prompts(prompts[0], given.get("generation_config"))
    media = read_media_of_all(given, len(inputs))
    return GenerateCall(inputs, media, configs, given.get("streamer"))


def read_request(
    args: Sequence[Any], named: Mapping[str, Any]
) -> tuple[str | PromptIds, GenerationConfig, Media | None]:
    """Sort the arguments of ``add_request`` after the number; see there.

    Raises:
        TypeError: an argument is missing, unknown or given twice, or there are too many.
        PromptError: an image or a video is broken.
    """
    given = by_name("add_request", args, named, ("generation_config",))
    given |= _read("add_request", given, _REQUEST)
    prompts = [given.pop(name) for name in ("prompts", "prompt", "input_ids") if name in given]
    config = given.pop("generation_config", None)
    prompts = [prompt for prompt in prompts if prompt is not None]
    if len(prompts) != 1 or config is None:
        raise TypeError("add_request: pass request_id, prompt or input_ids, and generation_config")
    for name in given.keys() - {*NAMES}:
        raise TypeError(f"add_request() got an unexpected argument {name!r}")
    return prompts[0], config, read_media(given)


def _read(owner: str, given: Mapping[str, Any], hints: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as their annotations say; None is left out."""
    return read_named(owner, {n: one for n, one in given.items() if one is not None}, hints)


def by_name(
    owner: str, args: Sequence[Any], named: Mapping[str, Any], last: Sequence[str]
) -> dict[str, Any]:
    """Return arguments by name; images and videos may be left out before the parameters.

    Args:
        owner: name of the method, for messages.
        args: prompts, images, videos, parameters, and others.
        named: the same by name.
        last: names of the arguments after the videos.

    Raises:
        TypeError: an argument is given twice, or there are too many.
    """
    names = ["prompts", "images", "videos"]
    places = [place for place, value in enumerate(args) if _is_config(value)]
    # Of two arguments, the second are the parameters, also if they are broken.
    place = places[0] if places else 1 if len(args) == _PAIR else len(names)
    names = [*names[:place], *last]
    if len(args) > len(names):
        raise TypeError(f"{owner}() takes at most {len(names)} positional arguments")
    found = dict(zip(names, args, strict=False))
    for name in found.keys() & named.keys():
        raise TypeError(f"{owner}() got multiple values for argument {name!r}")
    return {**found, **named}


def _is_config(value: object) -> bool:
    return isinstance(value, GenerationConfig) or bool(_all(value, GenerationConfig))


def _read_prompts(
    prompts: str | list[Any], configs: object
) -> tuple[list[str] | list[ChatHistory] | list[list[int]], list[GenerationConfig]]:
    """Return the prompts, which are of one kind, and the parameters of each."""
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


def _of_one_kind(prompts: str | list[Any]) -> list[str] | list[ChatHistory] | list[list[int]]:
    if isinstance(prompts, str):
        raise PromptError(
            "prompts are a text, not a list; pass a list of prompts, or a text with one "
            "GenerationConfig"
        )
    if not prompts:
        raise PromptError("prompts: the list is empty; pass at least one prompt")
    return _all(prompts, str) or _all(prompts, ChatHistory) or [*map(ids_of, prompts)]


def _all(values: object, kind: type[T]) -> list[T]:
    """Return a list of values of a type; empty if there are none, or others."""
    if not isinstance(values, list | tuple):
        return []
    listed = cast("Sequence[object]", values)
    found = [one for one in listed if isinstance(one, kind)]
    return found if len(found) == len(listed) else []
