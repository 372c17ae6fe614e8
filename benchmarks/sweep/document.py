"""Sections of documents about one model: all figures, and a summary.

A document keeps the sections of other models: each stands between two comments with its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from report import table, write_atomically

from sweep.figures import MARK, Figure, Table, is_marked

END = "<!-- end of sweeps -->"
"""Line of a document behind its last section."""

_RATIO, _PEER = "÷ neighbour", "÷ OpenVINO"


def part(found: Table) -> str:
    """Return one sweep's figures, with its rule and what was refused."""
    with_peer = any(figure.peer is not None for figure in found.figures)
    header = ["setting", *(text for each in found.quantities for text in (f"{each}, ms", _RATIO))]
    rows = [_row(figure, with_peer) for figure in found.figures if figure.values]
    refused = [
        f"- {figure.setting}: {figure.refused}" for figure in found.figures if figure.refused
    ]
    parts = [f"### {found.title}", found.rule]
    parts.append(table([*header, _PEER] if with_peer else header, rows))
    return "\n\n".join([*parts, "Refused:", "\n".join(refused)] if refused else parts)


def section(name: str, circumstances: Sequence[str], tables: Sequence[Table]) -> str:
    """Return all figures of a model."""
    lines = "\n".join(f"- {line}" for line in circumstances)
    return "\n\n".join([f"## {name}", lines, *(part(each) for each in tables)])


def summary(name: str, circumstances: Sequence[str], tables: Sequence[Table]) -> str:
    """Return a table with a row for each sweep, and the marked settings of each."""
    header = ("sweep", "settings", "ms", _PEER)
    rows = [
        (
            each.title,
            _count(each),
            _range([1e3 * value for figure in each.figures for value in figure.values[:1]]),
            _range([figure.peer for figure in each.figures if figure.peer is not None]),
        )
        for each in tables
    ]
    marked = [f"- {each.title}: {'; '.join(_marked(each)) or 'none'}" for each in tables]
    lines = "\n".join([f"{_RATIO} ≥ {MARK:g}:", "", *marked])
    return f"**{name}** – {'; '.join(circumstances)}:\n\n{table(header, rows)}\n\n{lines}"


def update(path: Path, name: str, text: str) -> None:
    """Replace a model's section in a document; a new one stands before the line ``END``.

    Raises:
        ValueError: the section has no end.
    """
    begin, end = f"<!-- sweep of {name} -->", f"<!-- end of the sweep of {name} -->"
    found = path.read_text()
    if begin not in found:
        found = found.replace(END, f"{begin}\n{end}\n\n{END}")
    before, _, rest = found.partition(begin)
    _, ended, after = rest.partition(end)
    if not ended:
        raise ValueError(f"{path}: the section of {name} has no end; add the line {end}")
    write_atomically(path, f"{before}{begin}\n\n{text}\n\n{end}{after}")


def _row(figure: Figure, with_peer: bool) -> list[str]:
    ratios = [*map(_ratio, figure.ratios)] or [""] * len(figure.values)
    pairs = zip(figure.values, ratios, strict=True)
    cells = [cell for value, ratio in pairs for cell in (_ms(value), ratio)]
    peer = [f"{figure.peer:.2f}" if figure.peer is not None else ""] if with_peer else []
    return [figure.setting, *cells, *peer]


def _ratio(ratio: float) -> str:
    return f"**{ratio:.2f}**" if is_marked(ratio) else f"{ratio:.2f}"


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:,.2f}"


def _count(found: Table) -> str:
    refused = sum(bool(figure.refused) for figure in found.figures)
    return f"{len(found.figures)}" + (f", {refused} refused" if refused else "")


def _range(values: Sequence[float]) -> str:
    return f"{min(values):,.2f} to {max(values):,.2f}" if values else ""


def _marked(found: Table) -> Iterator[str]:
    """Yield marked settings, each with its largest ratio."""
    for figure in found.figures:
        if figure.marked:
            yield f"{figure.setting}: {max(figure.ratios):.1f}"
