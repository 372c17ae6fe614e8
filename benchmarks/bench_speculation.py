"""Speculation benchmark: tokens per second with a draft model, and with prompt lookup.

    python benchmarks/bench_speculation.py --models DIR [--rounds 5] [--into RESULTS_SPECULATION.md]

Greedy decoding, without and with candidates, in turns; texts must be equal. Times begin with the
first token: host time is that of the simulation, device time the cost model's prediction for the
programs that run, those of the draft model included. ``draft_pair.py`` describes the pair.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from draft_pair import DEMO, make_pair
from machine import describe
from report import table, write_atomically
from timed_device import TimedDevice

from genai_layer import DecodedResults, LLMPipeline, draft_model
from npuw_layer import Core

HERE = Path(__file__).resolve().parent
STEP = "NPUW_LLM_MAX_GENERATION_TOKEN_LEN"
LENGTHS = {"MAX_PROMPT_LEN": 256, "MIN_RESPONSE_LEN": 128}
NEW = 100

QUESTIONS = ("What is an NPU?", "Who reads a blob?", "What is a KV cache?", "Explain prefill.")
SUMMARY = (
    "The KV cache stores the key and value vectors of all earlier tokens. Without it, every new "
    "token would have to recompute them for the whole text. A blob is the compiled program for the "
    "NPU: an ELF file that holds task lists, SHAVE code, constants, barriers and the descriptions "
    "of inputs and outputs. Summarise: what is a blob?"
)
"""Text whose summary quotes it."""


@dataclass(slots=True)
class Timed:
    """Pipeline, and its tokens per second in each round."""

    pipe: LLMPipeline
    device: TimedDevice
    parameters: dict[str, Any]
    host: list[float] = field(default_factory=list[float])
    simulated: list[float] = field(default_factory=list[float])
    drafted: int = 0
    accepted: int = 0

    def round(self, prompts: Sequence[str]) -> list[str]:
        """Measure a generation for each prompt; return the texts."""
        texts: list[str] = []
        tokens = host = simulated = 0.0
        for prompt in prompts:
            alone, _ = self._run(prompt, 1)
            took, results = self._run(prompt, NEW)
            durations = results.perf_metrics.raw_metrics.m_durations
            tokens += len(durations)
            host += sum(durations) * 1e-6
            simulated += took - alone
            texts += results.texts
            self._count(results)
        self.host.append(tokens / host)
        self.simulated.append(tokens / simulated)
        return texts

    def _run(self, prompt: str, tokens: int) -> tuple[float, DecodedResults]:
        before = self.device.seconds
        results = self.pipe.generate([prompt], max_new_tokens=tokens, **self.parameters)
        return self.device.seconds - before, results

    def _count(self, results: DecodedResults) -> None:
        both = results.extended_perf_metrics
        if both is not None:
            self.drafted += both.get_num_draft_tokens()
            self.accepted += both.get_num_accepted_tokens()


@dataclass(frozen=True, slots=True)
class Case:
    """Comparison of greedy decoding without and with candidates."""

    title: str
    prompts: Sequence[str]
    bar: float
    """Required ratio of tokens per second of host time (issue 31)."""
    plain: Timed
    with_candidates: Timed

    def run(self, rounds: int) -> None:
        """Measure both in turns; the first round only warms up.

        Raises:
            SystemExit: the texts differ.
        """
        for number in range(rounds + 1):
            texts = [one.round(self.prompts) for one in (self.plain, self.with_candidates)]
            if texts[0] != texts[1]:
                raise SystemExit(f"{self.title}: candidates change the text: {texts}")
            if not number:
                for one in (self.plain, self.with_candidates):
                    one.host.clear()
                    one.simulated.clear()

    def row(self) -> tuple[str, ...]:
        """Return the cells of the report."""
        plain, fast = self.plain, self.with_candidates
        ratios = [b / a for a, b in zip(plain.host, fast.host, strict=True)]
        ratio = statistics.median(ratios)
        return (
            self.title,
            f"{statistics.median(plain.host):.0f}",
            f"{statistics.median(fast.host):.0f}",
            f"{ratio:.2f} ({min(ratios):.2f}..{max(ratios):.2f})",
            f"{plain.simulated[-1]:.0f}",
            f"{fast.simulated[-1]:.0f}",
            f"{fast.simulated[-1] / plain.simulated[-1]:.2f}",
            f"{fast.accepted / fast.drafted:.0%}" if fast.drafted else "–",
            f"≥ {self.bar}: {'met' if ratio >= self.bar else 'missed'}",
        )


def timed(folder: Path, parameters: dict[str, Any] | None = None, **properties: Any) -> Timed:
    """Open a pipeline on a device of its own."""
    device = properties.pop("device", None) or TimedDevice("4000")
    pipe = LLMPipeline(folder, "NPU", core=Core(device=device), **LENGTHS, **properties)
    return Timed(pipe, device, parameters or {})


def cases(models: Path, cache: Path) -> Iterator[Case]:
    """Yield the comparisons."""
    target, draft = make_pair(models)
    kept = {"CACHE_DIR": str(cache)}
    device = TimedDevice("4000")
    given = draft_model(draft, core=Core(device=device))
    drafted = timed(
        target, {"num_assistant_tokens": 4}, device=device, draft_model=given, **{STEP: 8}, **kept
    )
    yield Case("draft model", QUESTIONS, 1.5, timed(target, **kept), drafted)
    lookup = {"num_assistant_tokens": 7, "max_ngram_size": 2}
    looks_up = timed(DEMO, lookup, prompt_lookup=True, **{STEP: 8}, **kept)
    yield Case("prompt lookup", (SUMMARY,), 1.3, timed(DEMO, **kept), looks_up)


def main() -> None:
    """Run the benchmark, and write the report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=Path, required=True, help="folder for the pair")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--into", type=Path, default=HERE / "RESULTS_SPECULATION.md")
    arguments = parser.parse_args()
    header = ("candidates", "host tokens/s", "with", "ratio", "device tokens/s", "with", "ratio")
    rows: list[tuple[str, ...]] = []
    for case in cases(arguments.models, arguments.models / "speculation-cache"):
        case.run(arguments.rounds)
        rows.append(case.row())
    text = "\n\n".join(
        (
            "# Speed with candidates for the next tokens",
            f"{datetime.now(UTC):%Y-%m-%d}; medians (least..greatest) of {arguments.rounds} rounds "
            "in turns; written by `bench_speculation.py`, which describes the cases.",
            "\n".join(f"- {line}" for line in describe()),
            table((*header, "accepted", "bar"), rows),
        )
    )
    write_atomically(arguments.into, text + "\n")
    print(text)


if __name__ == "__main__":
    main()
