"""The table that --stats shows."""

from __future__ import annotations

from collections.abc import Mapping

from genai_layer.results import DecodedResults


def stats_table(results: DecodedResults, report: Mapping[str, str]) -> str:
    """Describe a generation.

    Args:
        results: of one text.
        report: the runtime's own facts, shown first.
    """
    metrics = results.perf_metrics
    rows = {
        **report,
        "prompt": f"{metrics.get_num_input_tokens()} tokens",
        "generated": f"{metrics.get_num_generated_tokens()} tokens",
        "TTFT": f"{metrics.get_ttft().mean:.0f} ms",
        "speed": f"{metrics.get_throughput().mean:.1f} tokens/s",
        "finished by": results.finish_reasons[0].name,
    }
    width = max(map(len, rows))
    return "".join(f"{name:{width}}  {value}\n" for name, value in rows.items())
