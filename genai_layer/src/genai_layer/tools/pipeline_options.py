"""Arguments of commands that load a language model: folder, device, properties, adapters.

The progress of loading a model is shown on a terminal's stderr.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from genai_layer import Adapter, AdapterConfig, GenAIError, LLMPipeline, PropertyError
from genai_layer.abilities import ListsProperties, ReportsProgress
from genai_layer.npu import property_names
from genai_layer.runtime import Core
from genai_layer.runtimes import load_core

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_PATIENCE = 1.0
"""Seconds before progress is shown."""


@contextlib.contextmanager
def loading(core: Core) -> Generator[None]:
    """Show the progress of the models that a runtime loads in the block, after the first second.

    A line shows the elapsed time; others the activities that the runtime reports, with per cent.
    Nothing is shown if stderr is not a terminal.
    """
    if not sys.stderr.isatty():
        yield
        return
    lines = _lines()
    lines.add_task("loading the model", total=None, count="")
    patience = threading.Timer(_PATIENCE, lines.start)
    patience.start()
    reports = (
        core.reporting_progress(_Activities(lines).show)
        if isinstance(core, ReportsProgress)
        else None
    )
    try:
        with reports or contextlib.nullcontext():
            yield
    finally:
        patience.cancel()
        patience.join()
        lines.stop()


class _Activities:
    """A line for each activity that has begun and not ended."""

    def __init__(self, lines: Progress) -> None:
        self._lines = lines
        self._tasks: dict[str, TaskID] = {}

    def show(self, activity: str, done: int, total: int, unit: str) -> None:
        """Receive a report; see ``ProgressListener``."""
        from rich.filesize import decimal

        if done >= total:
            if activity in self._tasks:
                self._lines.remove_task(self._tasks.pop(activity))
            return
        if activity not in self._tasks:
            self._tasks[activity] = self._lines.add_task(activity, total=total, count="")
        count = (
            f"{decimal(done)} of {decimal(total)}" if unit == "B" else f"{done} of {total} {unit}"
        )
        self._lines.update(self._tasks[activity], completed=done, count=count)


def _lines() -> Progress:
    # Imported here: progress is rarely shown.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(30),
        TaskProgressColumn(),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )


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
    properties = properties_of(settings)
    if adapters:
        properties["adapters"] = AdapterConfig([(Adapter(path), alpha) for path, alpha in adapters])
    core = load_core(device)
    with loading(core):
        return LLMPipeline(model, device, core=core, **properties)


def properties_of(settings: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the properties of the options -c.

    Raises:
        PropertyError: a property is given twice.
    """
    properties: dict[str, Any] = {}
    for name, value in settings:
        if name in properties:
            raise PropertyError(f"-c {name}: given twice; leave one out")
        properties[name] = value
    return properties


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
