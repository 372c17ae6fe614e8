"""Metrics of the server, for Prometheus.

Metrics whose names begin with ``vllm:`` mean what vLLM's mean; the names of others begin with
``npu_``.

Source: vLLM's metrics, docs/reference/serving.md#metrics.
"""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

_MODEL = ("model_name",)

_SHORT = (0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0)
_FIRST = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, *_SHORT, 160.0, 640.0, 2560.0)
"""Buckets of the time to the first token, in seconds."""
_BETWEEN = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, *_SHORT)
"""Buckets of the time between tokens, in seconds; vLLM's begin with 0.01."""
_MINUTES = (60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0)
_WHOLE = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, *_MINUTES)
"""Buckets of the duration of a request and of its phases, in seconds."""
_LENGTHS = tuple(digit * 10**power for power in range(5) for digit in (1, 2, 5))
"""Buckets of numbers of tokens."""


class Metrics:
    """All metrics of a server, in a registry of their own."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=registry)

        def gauge(name: str, text: str, labels: tuple[str, ...] = _MODEL) -> Gauge:
            return Gauge(name, text, labels, registry=registry)

        def counter(name: str, text: str, labels: tuple[str, ...] = _MODEL) -> Counter:
            return Counter(name, text, labels, registry=registry)

        def histogram(name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(name, text, _MODEL, buckets=buckets, registry=registry)

        self.running = gauge("vllm:num_requests_running", "Requests that have a place.")
        self.waiting = gauge("vllm:num_requests_waiting", "Requests that wait for a place.")
        self.cache_usage = gauge(
            "vllm:kv_cache_usage_perc", "Used fraction of the fullest request's KV cache, 0 to 1."
        )
        self.prefix_queries = counter(
            "vllm:prefix_cache_queries", "Prompt tokens looked up in the prefix cache."
        )
        self.prefix_hits = counter(
            "vllm:prefix_cache_hits", "Prompt tokens found in the prefix cache."
        )
        self.prompt_tokens = counter("vllm:prompt_tokens", "Prompt tokens read.")
        self.generation_tokens = counter("vllm:generation_tokens", "Tokens generated.")
        self.success = counter(
            "vllm:request_success",
            "Requests that ended, by reason: stop, length, abort, error.",
            (*_MODEL, "finished_reason"),
        )
        self.request_prompt_tokens = histogram(
            "vllm:request_prompt_tokens", "Prompt tokens of a request.", _LENGTHS
        )
        self.request_generation_tokens = histogram(
            "vllm:request_generation_tokens", "Generated tokens of a request.", _LENGTHS
        )
        self.first_token = histogram(
            "vllm:time_to_first_token_seconds", "Arrival of a request to its first token.", _FIRST
        )
        self.between_tokens = histogram(
            "vllm:inter_token_latency_seconds", "Time between two tokens of a request.", _BETWEEN
        )
        self.whole = histogram(
            "vllm:e2e_request_latency_seconds", "Arrival of a request to its last token.", _WHOLE
        )
        self.queue_time = histogram(
            "vllm:request_queue_time_seconds", "Arrival of a request to its place.", _WHOLE
        )
        self.prefill_time = histogram(
            "vllm:request_prefill_time_seconds", "Place of a request to its first token.", _WHOLE
        )
        self.decode_time = histogram(
            "vllm:request_decode_time_seconds", "First token of a request to its last.", _WHOLE
        )
        self.responses = counter("npu_http_responses", "HTTP responses by status.", ("status",))
        self.loads = counter("npu_model_loads", "Loads of a model.")
        self.unloads = counter("npu_model_unloads", "Removals of a model to make room.")
        self.loaded_bytes = gauge("npu_model_bytes", "Bytes of the weights of a loaded model.")

    def text(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return generate_latest(self._registry)
