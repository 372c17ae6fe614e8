"""Arguments of commands that load a language model: folder, device, properties, adapters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from genai_layer import Adapter, AdapterConfig, GenAIError, LLMPipeline, PropertyError
from genai_layer.abilities import ListsProperties
from genai_layer.npu import property_names
from genai_layer.runtimes import load_core
from genai_layer.tools.progress import loading

_PATHS = ("_DIR", "_PATH")
"""Ends of the names of properties whose values are paths."""


def load_pipeline(
    model: str,
    device: str,
    settings: Sequence[tuple[str, Any]],
    adapters: Sequence[tuple[str, float]] = (),
) -> LLMPipeline:
    """Load a model, and show the progress on a terminal.

    Args:
        model: the folder.
        device: name of the device.
        settings: properties by name.
        adapters: files of LoRA adapters with their alphas.

    Raises:
        GenAIError: see ``LLMPipeline``; or a property is given twice.
    """
    properties: dict[str, Any] = {}
    for name, value in settings:
        if name in properties:
            raise PropertyError(f"-c {name}: given twice; leave one out")
        properties[name] = value
    if adapters:
        properties["adapters"] = AdapterConfig([(Adapter(path), alpha) for path, alpha in adapters])
    core = load_core(device)
    with loading(core):
        return LLMPipeline(model, device, core=core, **properties)


def folders(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Complete a folder."""
    return [CompletionItem(incomplete, type="dir")]


def files(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Complete a file."""
    return [CompletionItem(incomplete, type="file")]


def property_option() -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare -c NAME=VALUE; names are completed if --device, or its default, has a runtime."""
    return click.option(
        "-c",
        "--config",
        metavar="KEY=VALUE",
        type=_setting,
        multiple=True,
        shell_complete=_complete_setting,
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


def _complete_setting(
    context: click.Context, _: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """Complete the name of a property, or its value if that is a path."""
    name, equals, _value = incomplete.partition("=")
    if equals:
        return [CompletionItem(incomplete, type="file")] if name.endswith(_PATHS) else []
    names = _names(context.params.get("device") or "NPU")
    return [CompletionItem(f"{name}=") for name in names if name.startswith(incomplete)]


def _names(device: str) -> Sequence[str]:
    """Return the names of a device's properties that may be set; none if it has no runtime."""
    try:
        core = load_core(device)
        if not isinstance(core, ListsProperties):
            return ()
        known = core.get_property(device, "SUPPORTED_PROPERTIES")
    except (GenAIError, RuntimeError):
        return ()
    own = property_names() if device == "NPU" else ()
    return [*own, *(name for name, access in known.items() if access == "RW")]
