"""Arguments of commands that load a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def property_option() -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare -c NAME=VALUE."""
    return click.option(
        "-c",
        "--config",
        metavar="KEY=VALUE",
        type=_setting,
        multiple=True,
        help="property, e.g. MAX_PROMPT_LEN=256 or INFERENCE_PRECISION_HINT=f32; repeatable",
    )


def _setting(text: str) -> tuple[str, Any]:
    """Read KEY=VALUE; the value is an integer, true or false, or a string."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise click.BadParameter(f"{text!r} is not KEY=VALUE")
    words = {"true": True, "false": False}
    if value.lower() in words:
        return key, words[value.lower()]
    try:
        return key, int(value)
    except ValueError:
        return key, value
