"""Tables of a benchmark, as Markdown that is readable in a terminal."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bars import judge
from machine_limits import limits_table
from other_work import QUIET
from results import (
    PeerResult,
    ScenarioResult,
    Spread,
    decode_rate,
    first_token_ms,
    load_seconds,
    peak_mb,
    ratio,
    warm_load_seconds,
    warm_peak_mb,
)

Rows = Iterable[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Circumstances that a benchmark's figures depend on."""

    date: str
    machine: Sequence[str]
    """Lines that describe the machine."""
    limits: dict[str, float]
    protocol: str
    left_out: Sequence[str]
    """Parts of a full benchmark that are missing; empty for a full one."""


def table(header: Sequence[str], rows: Rows) -> str:
    """Return a Markdown table with aligned columns; the first is left-aligned, the others right."""
    cells = [list(header), *(list(row) for row in rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(header))]

    def line(row: Sequence[str]) -> str:
        padded = [
            text.ljust(width) if at == 0 else text.rjust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = "|".join(
        "-" * (width + 1) + ("-" if at == 0 else ":") for at, width in enumerate(widths)
    )
    return "\n".join([line(cells[0]), f"|{rule}|", *map(line, cells[1:])])


def document(results: Sequence[ScenarioResult], at: Circumstances) -> str:
    """Return the complete report."""
    parts = ["# Speed compared to peers, on one machine, in one run", f"{at.date}. {at.protocol}"]
    if at.left_out:
        parts.append("**A partial run.** Left out:\n\n" + "\n".join(f"- {x}" for x in at.left_out))
    parts.append("## Machine\n\n" + "\n".join(f"- {line}" for line in at.machine))
    parts.append(table(("limit", "measured here"), limits_table(at.limits)))
    parts.append("## Bars\n\nOurs ÷ the peer's, round by round; the median decides.")
    for result in results:
        parts += [f"### {result.scenario.title}", bars_table(result, at.limits)]
    for result in results:
        parts += [f"## {result.scenario.title}", medians_table(result, at.limits)]
        parts += [ratios_table(result), *_notes(result)]
    return "\n\n".join(part for part in parts if part) + "\n"


def bars_table(result: ScenarioResult, limits: dict[str, float]) -> str:
    """Return a table of the bars that apply, with verdicts."""
    rows = [
        (
            f"{found.title}, {found.ours}",
            f"÷ {found.other}",
            f"{'≥' if found.at_least else '≤'} {found.limit:g}",
            _spread(found.found, 2),
            found.verdict.value + (" †" if found.found and found.disturbed else ""),
        )
        for found in judge(result, limits)
    ]
    return table(("what", "baseline", "bar", "median (min..max)", "verdict"), rows) if rows else ""


def medians_table(result: ScenarioResult, limits: dict[str, float]) -> str:
    """Return a table with the medians of each peer."""
    header = (
        *("peer", "TTFT ms", "decode tokens/s", "of bandwidth", "prefill Gop/s", "of GEMM peak"),
        *("import s", "load s", "warm load s", "peak MB", "warm peak MB", "others' work"),
    )
    rows = [_measured_row(result, peer, limits) for peer in result.peers if peer.runs]
    return table(header, rows) if rows else "No peer was measured."


def _measured_row(
    result: ScenarioResult, peer: PeerResult, limits: dict[str, float]
) -> Sequence[str]:
    share, rate = result.bandwidth_share(peer, limits), result.prefill_rate(peer)
    gemm = result.gemm_share(peer, limits)
    ours = peer.peer.is_ours
    imports = Spread.of(start.import_seconds for start in peer.starts.values())
    mark = " †" if peer.disturbed else ""
    return (
        peer.peer.title + ("*" if peer.reloaded else ""),
        _spread(Spread.of(first_token_ms(peer).values()), 0),
        _spread(Spread.of(decode_rate(peer).values()), 1),
        f"{share.median:.0%}" if share else "–",
        f"{rate / 1e9:.0f}" if rate else "–",
        f"{gemm:.0%}" if gemm else "–",
        _median(imports, 2),
        _median(Spread.of(load_seconds(peer).values()), 2),
        _median(Spread.of(warm_load_seconds(peer).values()), 2) if ours else "",
        _median(Spread.of(peak_mb(peer).values()), 0),
        _median(Spread.of(warm_peak_mb(peer).values()), 0) if ours else "",
        f"{peer.other_work:.0%}{mark}",
    )


def ratios_table(result: ScenarioResult) -> str:
    """Return a table of ratios: each row of ours ÷ each peer with the same number of bits."""
    quantities = (
        decode_rate,
        first_token_ms,
        load_seconds,
        warm_load_seconds,
        peak_mb,
        warm_peak_mb,
    )
    rows = [
        (
            ours.peer.title,
            f"÷ {other.peer.title}",
            *(_spread(ratio(quantity, ours, other), 2) for quantity in quantities),
        )
        for ours in result.peers
        for other in result.peers
        if ours.peer.is_ours and not other.peer.is_ours and other.peer.answers_to(ours.peer)
        if ours.runs and other.runs
    ]
    header = ("ours", "baseline", "decode", "TTFT", "load", "warm load", "peak", "warm peak")
    return table(header, rows) if rows else ""


def _notes(result: ScenarioResult) -> list[str]:
    notes: list[str] = []
    if any(peer.disturbed for peer in result.peers):
        notes.append(
            f"† other processes used over {QUIET:.0%} of the machine during a run: not reliable."
        )
    if any(peer.reloaded for peer in result.peers):
        notes.append("\\* reopened for each round, as memory did not suffice for all peers.")
    absent = [f"- {peer.peer.title}: {peer.absent}" for peer in result.peers if peer.absent]
    if absent:
        notes.append("Not measured, or failed:\n\n" + "\n".join(absent))
    return notes


def _median(spread: Spread | None, digits: int) -> str:
    return f"{spread.median:,.{digits}f}" if spread else "–"


def _spread(spread: Spread | None, digits: int) -> str:
    if spread is None:
        return "–"
    return f"{spread.median:,.{digits}f} ({spread.low:,.{digits}f}..{spread.high:,.{digits}f})"


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that readers always find the old or the new content."""
    unfinished = path.with_name(path.name + ".part")
    with unfinished.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
