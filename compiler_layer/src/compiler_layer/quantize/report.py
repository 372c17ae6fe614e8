"""Report of quantization errors, by weight and by activation."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from compiler_layer.dialects.ov.types import Shape
from compiler_layer.quantize.linear import Floats
from compiler_layer.quantize.schemes import Scheme


@dataclass(slots=True)
class Errors:
    """Sums over a tensor's numbers, and over their errors."""

    count: int = 0
    largest_weight: float = 0.0
    largest_error: float = 0.0
    weights: float = 0.0
    errors: float = 0.0
    squared_weights: float = 0.0
    squared_errors: float = 0.0

    def add(self, weights: Floats, found: Floats) -> None:
        """Add a block of a tensor and its quantized numbers; the latter array is overwritten."""
        found -= weights
        np.abs(found, out=found)
        sizes = np.abs(weights)
        self.count += weights.size
        self.largest_weight = max(self.largest_weight, float(sizes.max()))
        self.largest_error = max(self.largest_error, float(found.max()))
        self.weights += float(sizes.sum(dtype=np.float64))
        self.errors += float(found.sum(dtype=np.float64))
        self.squared_weights += _squared(sizes)
        self.squared_errors += _squared(found)


def _squared(x: Floats) -> float:
    flat = x.reshape(-1)
    return float(np.dot(flat, flat))


@dataclass(frozen=True, slots=True)
class LayerReport:
    """Errors of one weight or activation, relative to its values."""

    name: str
    shape: Shape
    scheme: Scheme
    max_error: float
    """Largest error divided by the largest weight."""
    mean_error: float
    """Mean absolute error divided by the mean absolute weight."""
    relative_error: float
    """Frobenius norm of the errors divided by that of the weights."""

    @staticmethod
    def of(name: str, shape: Shape, scheme: Scheme, errors: Errors) -> LayerReport:
        """Compute a report from the sums over a complete tensor."""
        return LayerReport(
            name,
            shape,
            scheme,
            _ratio(errors.largest_error, errors.largest_weight),
            _ratio(errors.errors, errors.weights),
            math.sqrt(_ratio(errors.squared_errors, errors.squared_weights)),
        )

    @property
    def snr_db(self) -> float:
        """Signal-to-noise ratio in dB; infinite without errors."""
        return -20 * math.log10(self.relative_error) if self.relative_error else math.inf


def _ratio(part: float, whole: float) -> float:
    """Return ``part / whole``, or 0 if both are 0."""
    return part / whole if whole else 0.0


_HEAD = ("shape", "stored as", "max", "mean", "rel.", "SNR dB", "")


def format_table(reports: Sequence[LayerReport]) -> str:
    """Return the reports of weights as lines of text; the last line names the worst weight."""
    parameters = sum(math.prod(report.shape) for report in reports)
    return _table("weight", reports, f"{len(reports)} weights, {parameters:,} parameters")


def format_activations(reports: Sequence[LayerReport]) -> str:
    """Return the reports of activations, each named by the weight that it is multiplied with."""
    return _table("activation of", reports, f"{len(reports)} activations")


def format_kinds(reports: Sequence[LayerReport]) -> str:
    """Return the storage of weights as lines of text, one for each kind, e.g. ``q_proj``."""
    counts = Counter((_kind(report.name), report.scheme) for report in reports)
    rows = [
        (kind, str(scheme), str(count), scheme.note) for (kind, scheme), count in counts.items()
    ]
    return "\n".join(_aligned([("weights", "stored as", "count", ""), *rows], right=(2,)))


def _kind(name: str) -> str:
    """Return a weight's name without its layer's: the last word, with numbers masked."""
    words = name.removesuffix(".weight").split(".")
    return re.sub(r"(?<=_)\d+", "*", words[-1])


def _aligned(rows: Sequence[tuple[str, ...]], right: Collection[int]) -> list[str]:
    """Return rows as lines with aligned columns; ``right`` numbers those aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            text.rjust(width) if column in right else text.ljust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _table(what: str, reports: Sequence[LayerReport], summary: str) -> str:
    lines = _aligned([(what, *_HEAD), *map(_row, reports)], right=range(3, 7))
    worst = max(reports, key=lambda report: report.relative_error, default=None)
    if worst is not None:
        lines.append(f"{summary}; worst: {worst.name}, {worst.snr_db:.1f} dB")
    return "\n".join(lines)


def _row(report: LayerReport) -> tuple[str, ...]:
    return (
        report.name,
        "x".join(map(str, report.shape)),
        str(report.scheme),
        f"{report.max_error:.2%}",
        f"{report.mean_error:.2%}",
        f"{report.relative_error:.2%}",
        f"{report.snr_db:.1f}",
        report.scheme.note,
    )
