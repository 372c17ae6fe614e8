"""Pipelines on device NPU: names of options, and limits on lengths.

Source: docs/reference/genai.md#npu-options, docs/reference/genai.md#unsupported-on-npu,
docs/reference/genai.md#lengths-on-npu. Ours: lengths under NPUW's own names are read, too.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from genai_layer.errors import PromptTooLong, PropertyError
from genai_layer.generation_config import UNSET
from genai_layer.runtime import CompiledModel

_PREFIX = "NPUW_LLM_"
_ON_FULL = "NPUW_LLM_ON_FULL"
_RENAMED = (
    "MAX_PROMPT_LEN",
    "MIN_RESPONSE_LEN",
    "PREFILL_HINT",
    "GENERATE_HINT",
    "PREFILL_CONFIG",
    "GENERATE_CONFIG",
    "SHARED_HEAD_CONFIG",
)
_ALWAYS = {"NPU_USE_NPUW": "YES", "NPUW_LLM": "YES"}
_LANGUAGE = ("NPUW_", "++NPUW_", "KV_CACHE_PRECISION")
"""Prefixes of properties that are for the language model alone."""
_FLAGS = {"YES": True, "NO": False, "TRUE": True, "FALSE": False}
_DEFAULTS = {"MAX_PROMPT_LEN": 1024, "MIN_RESPONSE_LEN": 128}
_STEP = _PREFIX + "MAX_GENERATION_TOKEN_LEN"
_STEP_GRAIN = 8
"""Steps of several tokens take a multiple of this number (docs/reference/npuw.md#lengths)."""


class OnFull(StrEnum):
    """Behaviour of a runtime when the KV cache is full (NPUW_LLM_ON_FULL)."""

    ERROR = "ERROR"
    """Reject further tokens."""
    TRUNCATE = "TRUNCATE"
    """Forget older tokens and read the rest again. Prompts have to fit; the pipelines leave out
    whole turns of chats, the oldest first, and never cut a prompt."""
    SLIDE = "SLIDE"
    """Forget the oldest token for each new one; prompts may have any length."""


@dataclass(frozen=True, slots=True)
class StaticLengths:
    """Lengths that an NPU's programs are compiled for, in tokens."""

    max_prompt_len: int
    min_response_len: int
    on_full: OnFull = OnFull.ERROR
    """Behaviour when these lengths are exceeded."""
    step: int = 1
    """Maximum number of tokens of a generate step."""

    @property
    def capacity(self) -> int:
        """Maximum number of stored tokens."""
        return self.max_prompt_len + self.min_response_len - 1

    @property
    def longest_chat(self) -> int:
        """Maximum tokens of a chat whose turns are left out, and that leaves room for an answer."""
        return min(self.max_prompt_len, self.capacity - 1)

    def check_prompt(self, count: int, described: str = "") -> None:
        """Reject a prompt that does not fit, unless the cache slides.

        Args:
            count: number of tokens.
            described: description of the prompt's length, instead of its tokens.

        Raises:
            PromptTooLong: the prompt exceeds MAX_PROMPT_LEN.
        """
        if count <= self.max_prompt_len or self.on_full is OnFull.SLIDE:
            return
        whole, advice = "", ""
        if self.on_full is OnFull.TRUNCATE:
            whole = ", and no earlier turn to leave out"
            advice = f", or set {_ON_FULL}=SLIDE, which reads prompts of any length"
        raise PromptTooLong(
            f"MAX_PROMPT_LEN={self.max_prompt_len}: the prompt has "
            f"{described or f'{count} tokens'}{whole}; raise "
            f"MAX_PROMPT_LEN, e.g. to {-(-count // 64) * 64}, or shorten the prompt{advice}"
        )

    def room_after(self, prompt: int, texts: int = 1) -> int:
        """Return the number of tokens that fit after a prompt; UNSET if it is unlimited.

        Args:
            prompt: tokens of the prompt.
            texts: number of texts that are generated side by side; a cache of several is not read
                again when it is full.
        """
        # The last token is generated, but never stored.
        room = self.capacity + 1 - prompt
        again = self.on_full is OnFull.TRUNCATE and texts == 1 and room > 1
        return UNSET if again or self.on_full is OnFull.SLIDE else room


def property_names() -> tuple[str, ...]:
    """Return the pipeline's own names of properties, which differ from the runtime's."""
    return _RENAMED


def imports_blob(properties: Mapping[str, Any]) -> bool:
    """Return whether a compiled model is imported from BLOB_PATH, instead of compiled.

    Raises:
        PropertyError: EXPORT_BLOB is not a boolean.
    """
    export = properties.get("EXPORT_BLOB", False)
    wanted = _FLAGS.get(export.upper(), export) if isinstance(export, str) else export
    if not isinstance(wanted, bool):
        raise PropertyError(f"EXPORT_BLOB = {export!r}: must be YES or NO")
    return bool(properties.get("BLOB_PATH")) and not wanted


def lengths_of(compiled: CompiledModel) -> StaticLengths:
    """Return the lengths of a compiled model: for a model from a blob, those of the blob.

    Raises:
        RuntimeError: the model does not report its lengths.
    """
    most, least = (compiled.get_property(_PREFIX + name) for name in _DEFAULTS)
    least = _length("MIN_RESPONSE_LEN", least) - _spare(property_of(compiled, _STEP, 1))
    return StaticLengths(_length("MAX_PROMPT_LEN", most), least)


def on_full_of(compiled: CompiledModel) -> OnFull:
    """Return a compiled model's behaviour when its cache is full, however it was set.

    Returns:
        The behaviour; ERROR if the model has no such option, as it then forgets nothing.

    Raises:
        PropertyError: the model reports an unknown value.
    """
    value = property_of(compiled, _ON_FULL, OnFull.ERROR)
    if value not in list(OnFull):
        raise PropertyError(f"{_ON_FULL} = {value!r}: must be one of {', '.join(OnFull)}")
    return OnFull(value)


def slots_of(compiled: CompiledModel) -> int:
    """Return the largest number of conversations that a compiled model generates for at once."""
    # Runtimes return numbers, or the text that they were given.
    sizes = re.findall(r"\d+", str(property_of(compiled, "NPUW_LLM_BATCH_SLOTS", 1)))
    return max(map(int, sizes))


def settled_lengths(
    compiled: CompiledModel, lengths: StaticLengths | None, imported: bool
) -> StaticLengths | None:
    """Return lengths with the compiled model's behaviour when its cache is full.

    Args:
        compiled: the model.
        lengths: those that it was compiled for; None if it is not of an NPU.
        imported: True if it comes from a blob, which has its own lengths.

    Raises:
        RuntimeError: the model does not report its lengths.
        PropertyError: see ``on_full_of``.
    """
    if imported:
        lengths = lengths_of(compiled)
    return None if lengths is None else replace(lengths, on_full=on_full_of(compiled))


def npu_properties(
    properties: Mapping[str, Any], step: int = 1
) -> tuple[dict[str, Any], StaticLengths | None]:
    """Rename the pipeline's options to NPUW's, and read the lengths.

    Args:
        properties: the options.
        step: tokens of a generate step, unless an option sets it.

    Returns:
        The options; and the lengths, or None if they come from an imported blob.

    Raises:
        PropertyError: a length is not an integer, or an option is given under two names.
    """
    forwarded: dict[str, Any] = {}
    for name, value in properties.items():
        _check_spelling(name)
        new = _PREFIX + name.removeprefix("++") if name.removeprefix("++") in _RENAMED else name
        if new in forwarded:
            raise PropertyError(f"{name}: given twice, also as {new}; leave one out")
        forwarded[new] = value
    if imports_blob(forwarded):
        return _ALWAYS | forwarded, None
    lengths: dict[str, int] = {}
    for name, default in _DEFAULTS.items():
        value = forwarded.setdefault(_PREFIX + name, default)
        lengths[name] = _length(name, value)
    for name, value in _ALWAYS.items():
        forwarded.setdefault(name, value)
    most, least = lengths["MAX_PROMPT_LEN"], lengths["MIN_RESPONSE_LEN"]
    step = _length(_STEP, forwarded.get(_STEP, step))
    if step > 1:
        forwarded[_STEP] = step
        forwarded[_PREFIX + "MIN_RESPONSE_LEN"] = least + _spare(step)
    return forwarded, StaticLengths(most, least, step=step)


def encoder_properties(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of models beside the language model, which are compiled without NPUW.

    Args:
        properties: the language model's, under NPUW's names.
    """
    others = {name: value for name, value in properties.items() if not name.startswith(_LANGUAGE)}
    return others | {"NPU_USE_NPUW": "NO"}


def _check_spelling(name: str) -> None:
    """Reject misspelt names of the pipeline's options; the runtime checks all other names."""
    near = difflib.get_close_matches(name, _RENAMED, 1, cutoff=0.85)
    if near and name.removeprefix("++") not in _RENAMED:
        raise PropertyError(f"unknown property {name!r}; did you mean {near[0]}?")


def _spare(step: int) -> int:
    """Return by how many tokens a cache is longer: its last tokens cannot be a step of several."""
    return -(-step // _STEP_GRAIN) * _STEP_GRAIN - 1 if step > 1 else 0


def property_of(compiled: CompiledModel, name: str, default: Any) -> Any:
    """Return an option of a compiled model; the default if the model has no such option."""
    try:
        return compiled.get_property(name)
    except RuntimeError:
        return default


def _length(name: str, value: object) -> int:
    least = 0 if name == "MIN_RESPONSE_LEN" else 1
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise PropertyError(f"{name} = {value!r}: must be an integer of at least {least}")
    return value
