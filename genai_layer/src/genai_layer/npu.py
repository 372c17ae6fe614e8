"""What is special about the device NPU: names of options, and limits on lengths.

Source: fact sheet genai §c.2 to §c.4. Ours: lengths given under NPUW's own names count, too.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from genai_layer.errors import PromptError, PropertyError
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
_FLAGS = {"YES": True, "NO": False, "TRUE": True, "FALSE": False}
_DEFAULTS = {"MAX_PROMPT_LEN": 1024, "MIN_RESPONSE_LEN": 128}


class OnFull(StrEnum):
    """What a runtime does when the KV cache is full (NPUW_LLM_ON_FULL)."""

    ERROR = "ERROR"
    """It takes no more tokens."""
    TRUNCATE = "TRUNCATE"
    """It forgets older tokens and reads the rest anew; of a prompt too long it drops the middle."""
    SLIDE = "SLIDE"
    """It forgets the oldest token for each new one; a prompt has to fit."""


@dataclass(frozen=True, slots=True)
class StaticLengths:
    """The lengths that an NPU's programs are compiled for, in tokens."""

    max_prompt_len: int
    min_response_len: int
    on_full: OnFull = OnFull.ERROR
    """What becomes of tokens beyond them."""

    def check_prompt(self, count: int) -> None:
        """Refuse a prompt that does not fit, unless the runtime cuts it.

        Raises:
            PromptError: says the limit, the count, and what to raise.
        """
        if count <= self.max_prompt_len or self.on_full is OnFull.TRUNCATE:
            return
        advice = f"raise MAX_PROMPT_LEN (e.g. MAX_PROMPT_LEN={-(-count // 64) * 64})"
        if self.on_full is OnFull.SLIDE:
            advice += f", or set {_ON_FULL}=TRUNCATE, which cuts prompts: SLIDE forgets only later"
        raise PromptError(
            f"the prompt has {count} tokens, at most {self.max_prompt_len} are possible; {advice}"
        )

    def room_after(self, prompt: int) -> int:
        """Tokens that can be generated after a prompt of this length; UNSET if there is no end."""
        if self.on_full is not OnFull.ERROR:
            return UNSET
        # The last token is generated, but never stored.
        return self.max_prompt_len + self.min_response_len - prompt


def imports_blob(properties: Mapping[str, Any]) -> bool:
    """Tell whether a compiled model is to be imported from BLOB_PATH, rather than made.

    Raises:
        PropertyError: EXPORT_BLOB is neither yes nor no.
    """
    export = properties.get("EXPORT_BLOB", False)
    wanted = _FLAGS.get(export.upper(), export) if isinstance(export, str) else export
    if not isinstance(wanted, bool):
        raise PropertyError(f"EXPORT_BLOB = {export!r}: must be YES or NO")
    return bool(properties.get("BLOB_PATH")) and not wanted


def lengths_of(compiled: CompiledModel) -> StaticLengths:
    """Ask a compiled model for its lengths, where nobody set them: they are those of its blob.

    Raises:
        RuntimeError: it does not know.
    """
    most, least = (compiled.get_property(_PREFIX + name) for name in _DEFAULTS)
    return StaticLengths(_length("MAX_PROMPT_LEN", most), _length("MIN_RESPONSE_LEN", least))


def on_full_of(compiled: CompiledModel) -> OnFull:
    """Ask a compiled model what it does when its cache is full, whoever set that.

    Returns:
        That; ERROR if it has no such option, as nothing is known to be forgotten then.

    Raises:
        PropertyError: it is something unknown.
    """
    try:
        value = compiled.get_property(_ON_FULL)
    except RuntimeError:
        return OnFull.ERROR
    if value not in list(OnFull):
        raise PropertyError(f"{_ON_FULL} = {value!r}: must be one of {', '.join(OnFull)}")
    return OnFull(value)


def npu_properties(
    properties: Mapping[str, Any],
) -> tuple[dict[str, Any], StaticLengths | None]:
    """Rename the pipeline's options to those of NPUW, and read the lengths.

    Returns:
        The options; and the lengths, or None if a blob that is to be imported has them.

    Raises:
        PropertyError: a length is not a whole number, or an option is given under two names.
    """
    forwarded: dict[str, Any] = {}
    for name, value in properties.items():
        _check_spelling(name)
        new = _PREFIX + name.removeprefix("++") if name.removeprefix("++") in _RENAMED else name
        if new in forwarded:
            raise PropertyError(f"{name} is given twice, once as {new}; leave one out")
        forwarded[new] = value
    if imports_blob(forwarded):
        return _ALWAYS | forwarded, None
    lengths: dict[str, int] = {}
    for name, default in _DEFAULTS.items():
        value = forwarded.setdefault(_PREFIX + name, default)
        lengths[name] = _length(name, value)
    for name, value in _ALWAYS.items():
        forwarded.setdefault(name, value)
    return forwarded, StaticLengths(lengths["MAX_PROMPT_LEN"], lengths["MIN_RESPONSE_LEN"])


def _check_spelling(name: str) -> None:
    """Most names are the runtime's to know; ours should at least be spelt right."""
    near = difflib.get_close_matches(name, _RENAMED, 1, cutoff=0.85)
    if near and name.removeprefix("++") not in _RENAMED:
        raise PropertyError(f"unknown property {name!r}; did you mean {near[0]}?")


def _length(name: str, value: object) -> int:
    least = 1 if name == "MAX_PROMPT_LEN" else 0
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise PropertyError(f"{name} = {value!r}: must be a whole number of at least {least}")
    return value
