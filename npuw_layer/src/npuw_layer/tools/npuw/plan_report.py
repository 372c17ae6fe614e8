"""A plan as text with a bar chart, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from npuw_layer.options import Options
from npuw_layer.plan import EXPECTED_ERROR, Item, Prediction, StagePrediction

_BAR = 32
"""Characters of the longest bar."""

_EIGHTHS = " ▏▎▍▌▋▊▉"


def as_text(plan: Prediction, options: Options, weights: str, unicode: bool) -> Iterator[str]:
    """Yield the lines of a plan as text.

    Args:
        plan: the plan.
        options: options of the plan.
        weights: name of the weights' format.
        unicode: whether bars may use eighths of a character.
    """
    yield from _head(plan, options, weights)
    yield ""
    yield from _map(plan, unicode)
    yield ""
    yield from _table(plan)
    yield ""
    yield _prompt(plan, options)
    yield _summary(plan, options)
    for note in plan.notes:
        yield f"Note: {note}"
    for warning in plan.warnings:
        yield f"DOES NOT FIT: {warning}"
    yield (
        "Method: the compiler's own passes up to tiling, for one layer of each kind; the sum of "
        "the closed-form"
    )
    yield (
        "costs of all tiled operations. Nothing was compiled. The error against compiled blobs is "
        f"below {EXPECTED_ERROR:.0%} (tests/npuw/plan/test_plan.py)."
    )


def as_json(plan: Prediction, options: Options, weights: str) -> dict[str, Any]:
    """Return a plan as JSON values: bytes, milliseconds, shares of the time."""
    return {
        "family": plan.family,
        "parameters": plan.parameters,
        "platform": options.platform,
        "weights_format": weights,
        "max_prompt": plan.lengths.max_prompt,
        "total_positions": plan.lengths.total,
        "weights": {item.name: item.nbytes for item in plan.weights},
        "memory": {item.name: item.nbytes for item in plan.memory},
        "total_bytes": plan.total_bytes,
        "ttft_ms": 1e3 * plan.ttft(options.max_prompt_len),
        "chunks": [_chunk_json(one) for one in plan.chunks(options.max_prompt_len)],
        "padding": _padding(plan, options),
        "stages": [_stage_json(plan, one) for one in plan.stages],
        "warnings": list(plan.warnings),
        "notes": list(plan.notes),
        "expected_error": EXPECTED_ERROR,
    }


def _chunk_json(one: StagePrediction) -> dict[str, Any]:
    return {"name": one.stage.name, "ms": 1e3 * one.seconds}


def _padding(plan: Prediction, options: Options) -> int:
    """Return the rows without tokens that prefill models compute for the longest prompt."""
    rows = sum(one.stage.tokens for one in plan.chunks(options.max_prompt_len))
    return rows - options.max_prompt_len


def _stage_json(plan: Prediction, one: StagePrediction) -> dict[str, Any]:
    return {
        "name": one.stage.name,
        "kind": one.stage.kind.value,
        "tokens": one.stage.tokens,
        "slots": one.stage.slots,
        "capacity": one.stage.capacity,
        "ms": 1e3 * one.seconds,
        "tokens_per_s": plan.tokens_per_s(one),
        "blob_bytes": one.whole.blob_bytes,
        "scratch_bytes": one.scratch_bytes,
        "busy": one.busy,
        "bound": one.bound,
    }


def _head(plan: Prediction, options: Options, weights: str) -> Iterator[str]:
    decoder, lengths = plan.decoder, plan.lengths
    attention = decoder.attention
    yield (
        f"{plan.family}, {_count(plan.parameters)} parameters: {len(decoder.layers)} layers of "
        f"{decoder.hidden_size:,} channels, {attention.heads} heads ({attention.key_heads} of K "
        f"and V), a vocabulary of {decoder.vocab_size:,}"
    )
    caches = options.kv_element or options.precision
    chunks = f", read in chunks of {lengths.chunk:,}" if lengths.chunk else ""
    room = f"prompt {lengths.max_prompt:,}{chunks}, response {lengths.min_response:,}"
    yield (
        f"NPU {options.platform}, weights {weights}, activations {options.precision}, "
        f"K and V {caches}; {room}"
    )


def _map(plan: Prediction, unicode: bool) -> Iterator[str]:
    weights = [Item(f"weights: {item.name}", item.nbytes) for item in plan.weights]
    items = [*weights, *plan.memory]
    largest = max(item.nbytes for item in items)
    width = max(len(item.name) for item in items)
    yield f"{'device memory':{width}}  {_bytes(plan.total_bytes):>9}"
    for item in items:
        bar = _bar(item.nbytes / largest, unicode)
        share = item.nbytes / plan.total_bytes
        yield f"{item.name:{width}}  {_bytes(item.nbytes):>9}  {share:>4.0%}  {bar}".rstrip()


def _table(plan: Prediction) -> Iterator[str]:
    rows = [
        ("static model", "takes", "blob", "scratch", "time", "speed", "bound by", "DDR DPU SHAVE"),
        *(_row(plan, one) for one in plan.stages),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = zip(row, widths, strict=True)
        yield "  ".join(
            f"{text:<{width}}" if number in (0, 6) else f"{text:>{width}}"
            for number, (text, width) in enumerate(cells)
        ).rstrip()


def _row(plan: Prediction, one: StagePrediction) -> tuple[str, ...]:
    tokens, past = one.stage.tokens, one.stage.past
    taken = f"{tokens:,}" if not past else f"{tokens:,} after {past:,}"
    if one.stage.slots > 1:
        taken = f"{one.stage.slots} × {taken}"
    shares = "  ".join(f"{share:3.0%}" for share in one.busy.values())
    return (
        one.stage.name,
        taken,
        _bytes(one.whole.blob_bytes),
        _bytes(one.scratch_bytes),
        _time(one.seconds),
        f"{_significant(plan.tokens_per_s(one))} tokens/s",
        one.bound,
        shares,
    )


def _prompt(plan: Prediction, options: Options) -> str:
    chunks = " + ".join(
        f"{one.stage.name} {_time(one.seconds)}" for one in plan.chunks(options.max_prompt_len)
    )
    padding = _padding(plan, options)
    return f"A prompt of {options.max_prompt_len:,} tokens: {chunks}; {padding:,} rows of padding."


def _summary(plan: Prediction, options: Options) -> str:
    first, *_, last = [*plan.generate, *plan.generate]
    fast, slow = (_significant(plan.tokens_per_s(one)) for one in (first, last))
    speed = fast if fast == slow else f"{fast} to {slow}"
    prompt = options.max_prompt_len
    return f"TTFT after {prompt:,} tokens: {_time(plan.ttft(prompt))}; then {speed} tokens/s."


def _bar(share: float, unicode: bool) -> str:
    eighths = round(share * _BAR * 8)
    if not unicode:
        return "#" * max(1, eighths // 8)
    whole, rest = divmod(max(1, eighths), 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def _scaled(value: float, step: float, units: Sequence[str]) -> str:
    for unit in units[:-1]:
        if value < step:
            return f"{_significant(value)} {unit}".strip()
        value /= step
    return f"{_significant(value)} {units[-1]}"


def _significant(value: float) -> str:
    """Format a number with three digits, without exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _bytes(value: float) -> str:
    return _scaled(value, 1024, ("B", "KiB", "MiB", "GiB", "TiB"))


def _count(value: float) -> str:
    return _scaled(value, 1000, ("", "k", "M", "G", "T"))


def _time(seconds: float) -> str:
    return _scaled(seconds * 1e6, 1000, ("µs", "ms", "s"))
