"""``npuc explain``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import click

from compiler_layer.errors import CompilerUsageError
from compiler_layer.explain import Explanation, LayerCost, explain, grouped
from driver_layer.support.command import PATH, Command
from driver_layer.support.files import looking_at, read_regular

_EXAMPLES = """\
  npuc explain prefill.blob              sum equal operations of all decoder layers
  npuc explain prefill.blob --each       print one line per operation
  npuc explain prefill.blob --sort time  print the slowest operations first
  npuc explain prefill.blob --platform mine.toml    predict for a device with other numbers

DMA, DPU and SHAVE are numbers of tasks. CMX is the peak of an operation on one tile. DDR is the
bytes it reads and writes there. "alone" is the sum of its tasks' times. "span" is the time from
its first task's begin to its last task's end: engines and operations overlap.
Times are predicted by a closed-form model of the device, not measured.
"""

_WIDTH = 52
"""Maximum width of a name; a longer name is shortened in the middle."""

_SORTED: dict[str, Callable[[LayerCost], float] | None] = {
    "program": None,
    "time": lambda layer: layer.span_ns,
    "bytes": lambda layer: layer.ddr_bytes,
    "macs": lambda layer: layer.macs,
    "tasks": lambda layer: layer.transfers + layer.products + layer.invocations,
}


@click.command("explain", cls=Command, epilog=_EXAMPLES)
@click.argument("blob", type=PATH)
@click.option("--each", is_flag=True, help="do not sum equal operations")
@click.option(
    "--platform", help="platform, or file (.toml), of the blob's architecture; default: its own"
)
@click.option("--sort", type=click.Choice(list(_SORTED)), default="program")
def explain_command(blob: Path, each: bool, platform: str | None, sort: str) -> None:
    """Print a blob's tasks, memory and predicted time by operation."""
    with looking_at(blob, CompilerUsageError):
        data = read_regular(blob)
    found = explain(data, str(blob), platform)
    layers = list(found.layers) if each else grouped(found.layers)
    key = _SORTED[sort]
    if key is not None:
        layers.sort(key=key, reverse=True)
    for line in (*_table(layers), "", *_summary(found)):
        print(line)


def _table(layers: Sequence[LayerCost]) -> list[str]:
    head = (
        f"{'operation':{_WIDTH}} {'×':>4} {'DMA':>6} {'DPU':>6} {'SHAVE':>6} {'CMX':>8} "
        f"{'DDR':>9} {'MACs':>8} {'alone':>9} {'span':>9}"
    )
    return [head, *map(_line, layers)]


def _line(layer: LayerCost) -> str:
    return (
        f"{_shortened(layer.name):{_WIDTH}} {layer.count:>4} {layer.transfers:>6} "
        f"{layer.products:>6} {layer.invocations:>6} {_bytes(layer.cmx_bytes):>8} "
        f"{_bytes(layer.ddr_bytes):>9} {_count(layer.macs):>8} {_time(layer.busy_ns):>9} "
        f"{_time(layer.span_ns):>9}"
    )


def _summary(found: Explanation) -> list[str]:
    layers = found.layers
    tasks = sum(layer.transfers + layer.products + layer.invocations for layer in layers)
    moved, macs = sum(layer.ddr_bytes for layer in layers), sum(layer.macs for layer in layers)
    busiest = sorted(found.busy.items(), key=lambda item: -item[1])[:4]
    return [
        f"{tasks} tasks move {_bytes(moved)} to and from DDR and compute {_count(macs)} MACs",
        f"predicted time of one inference: {_time(found.total_ns)}",
        "busiest: " + ", ".join(f"{queue} {share:.0%}" for queue, share in busiest),
    ]


def _shortened(name: str) -> str:
    if len(name) <= _WIDTH:
        return name
    half = (_WIDTH - 1) // 2
    return f"{name[: _WIDTH - 1 - half]}…{name[-half:]}"


def _scaled(value: float, step: float, units: Sequence[str]) -> str:
    for unit in units[:-1]:
        if value < step:
            return f"{value:.4g} {unit}".strip() if value < 100 else f"{value:.0f} {unit}".strip()
        value /= step
    return f"{value:.4g} {units[-1]}"


def _bytes(value: float) -> str:
    return _scaled(value, 1024, ("B", "KiB", "MiB", "GiB"))


def _count(value: float) -> str:
    return _scaled(value, 1000, ("", "k", "M", "G", "T"))


def _time(nanoseconds: float) -> str:
    return _scaled(nanoseconds, 1000, ("ns", "µs", "ms", "s"))
