"""Reports of a language model's request: device memory, and how the last inferences ran."""

from __future__ import annotations

from dataclasses import dataclass

from npuw_layer.backends.protocols import ability
from npuw_layer.execution.devices.report import devices_report
from npuw_layer.execution.offload.report import ReportsOffload
from npuw_layer.llm.compiled import CompiledLLM
from npuw_layer.llm.request.rows import Rows


@dataclass(frozen=True, slots=True)
class RequestMemory:
    """Bytes of device memory."""

    kv_cache: int
    weights: int
    adapters: int


def memory_of(rows: Rows, compiled: CompiledLLM) -> RequestMemory:
    """Return the device memory of caches, adapters and shared weights."""
    caches, adapters = (
        sum(one.parts.nbytes(persists) for one in rows.pool) for persists in (False, True)
    )
    stored = sum(one.cache.nbytes for one in rows.pool)
    return RequestMemory(stored + caches, compiled.bank.nbytes, adapters)


def execution_report_of(rows: Rows, compiled: CompiledLLM) -> dict[str, str]:
    """Return a readable report of the last inferences, without their transfers."""
    first, plan = rows.first, compiled.plan
    ladder = "/".join(map(str, plan.capacities))
    report = {
        "blobs": str(compiled.origin),
        "prefill": " + ".join(first.reader.prefill.counts.prefills) or "none",
        "KV variant": f"{plan.capacities[first.reader.generate.variant]} of {ladder}",
        "KV copied": _described_copies(first.cache.copied_bytes),
    }
    if len(rows.active) > 1:
        report["rows"] = f"{len(rows.active)}; the values above are of row 0"
    if compiled.prefixes is not None:
        report["prefix cache"] = f"{first.reader.prefill.counts.cached_tokens} tokens"
    offload = ability(compiled.device, ReportsOffload)
    if offload is not None:
        report |= offload.offload_report().described()
    return report | devices_report(compiled.submodels)


def _described_copies(nbytes: int) -> str:
    """Describe the bytes copied into the cache; each generated token's row is copied."""
    return f"{nbytes} bytes (rows of generated tokens included)" if nbytes else "0 bytes"
