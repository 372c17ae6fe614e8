"""Arithmetic of the benchmark: medians, ratios, and shares of the machine's limits."""

from __future__ import annotations

from pathlib import Path

import pytest
from model_facts import ModelFacts, weight_bytes
from peer import Peer, every_peer, parse_peer
from results import (
    PeerResult,
    Scenario,
    ScenarioResult,
    Spread,
    decode_rate,
    ratio,
    warm_load_seconds,
)
from session import Run, Start

FACTS = ModelFacts(
    hidden=8, inner=16, layers=2, heads=4, kv_heads=2, head_dim=2, vocabulary=100, tied=True
)


def run(rate: float, first: float = 0.5) -> Run:
    """Return a generation of 11 tokens."""
    return Run(first, first + 10 / rate, tuple(range(11)), 0.0, 100.0)


def result(name: str, *rates: float) -> PeerResult:
    runs = {number: run(rate) for number, rate in enumerate(rates)}
    return PeerResult(parse_peer(name), 1000.0, runs=runs)


def test_the_decode_rate_excludes_the_first_token() -> None:
    assert run(40.0, first=3.0).decode_rate == pytest.approx(40.0)


def test_ratios_are_computed_within_rounds() -> None:
    ours, other = result("ours-int8", 20, 2, 30), result("openvino-int8", 10, 1, 10)
    assert ratio(decode_rate, ours, other) == Spread(*map(pytest.approx, (2.0, 2.0, 3.0)))


def test_a_round_that_only_one_peer_finished_has_no_ratio() -> None:
    ours, other = result("ours-int8", 20, 50), result("openvino-int8", 10)
    assert ratio(decode_rate, ours, other) == Spread(*map(pytest.approx, (2.0, 2.0, 2.0)))
    assert ratio(decode_rate, ours, result("openvino-int8")) is None


def test_warm_starts_are_compared_to_the_ordinary_starts_of_peers() -> None:
    ours, other = result("ours-int8"), result("openvino-int8")
    ours.starts[0] = Start(0.1, 8.0, "1", 200)
    ours.warm_starts[0] = Start(0.1, 1.0, "1", 200)
    other.starts[0] = Start(0.1, 2.0, "2", 100)
    assert ratio(warm_load_seconds, ours, other) == Spread(0.5, 0.5, 0.5)


def test_bytes_per_token_count_weights_and_the_cache_halfway_through_the_answer() -> None:
    scenario = ScenarioResult(Scenario("llama-8m", 100, 20), FACTS)
    ours = result("ours-int8", 50)
    # 2 (K, V) × 2 layers × 2 heads × 2 channels × 110 tokens × 2 bytes
    assert scenario.bytes_per_token(ours) == 1000 + 3520
    share = scenario.bandwidth_share(ours, {"read_1": 3e5, "read_2": 4.52e5, "gemm_f32": 1e12})
    assert share is not None
    assert share.median == pytest.approx(0.5)


def test_openvinos_kv_cache_has_8_bits_by_default() -> None:
    scenario = ScenarioResult(Scenario("llama-8m", 100, 20), FACTS)
    assert scenario.bytes_per_token(result("openvino-int8")) == 1000 + 1760
    assert scenario.bytes_per_token(result("openvino-int8:KV_CACHE_PRECISION=f16")) == 1000 + 3520
    assert scenario.bytes_per_token(result("ours-int8:KV_CACHE_PRECISION=i8")) == 1000 + 1760


def test_the_gemm_share_counts_the_operations_of_a_prompt() -> None:
    scenario = ScenarioResult(Scenario("llama-8m", 100, 20), FACTS)
    # A layer: 8 × 8 twice, 8 × 4 twice, 8 × 16 thrice; causal attention: half of 100 × 100.
    flops = 2 * 100 * 2 * 576 + 2 * 100 * 100 * 2 * 4 * 2 + 2 * 800
    assert FACTS.prefill_flops(100) == flops
    share = scenario.gemm_share(result("ours-int8", 50), {"gemm_f32": 1e6, "gemm_bf16": 4e6})
    assert share == pytest.approx(flops / 0.5 / 4e6)


def test_without_limits_or_runs_no_share_is_computed() -> None:
    scenario = ScenarioResult(Scenario("llama-8m", 100, 20), FACTS)
    assert scenario.bandwidth_share(result("ours-int8", 50), {}) is None
    assert scenario.gemm_share(result("ours-int8"), {"gemm_f32": 1e6}) is None


@pytest.mark.parametrize(("tied", "unread"), [(True, 0), (False, 100 * 8 * 2)])
def test_an_embedding_table_counts_only_if_it_is_the_lm_head(
    tmp_path: Path, tied: bool, unread: int
) -> None:
    facts = ModelFacts(8, 16, 2, 4, 2, 2, vocabulary=100, tied=tied)
    (tmp_path / "openvino_model.bin").write_bytes(bytes(5000))
    assert weight_bytes(Peer("ours", "fp16"), tmp_path, facts) == 5000 - unread


def test_transformers_weights_count_in_the_converted_type(tmp_path: Path) -> None:
    untied = ModelFacts(8, 16, 2, 4, 2, 2, vocabulary=100, tied=False)
    for facts in (FACTS, untied):
        assert weight_bytes(Peer("transformers", "f32"), tmp_path, facts) == 4 * (1152 + 800)


def test_parsing_the_name_of_a_peer_returns_the_peer() -> None:
    assert [parse_peer(peer.name) for peer in every_peer()] == every_peer()
    peer = parse_peer("ours-int8:INFERENCE_PRECISION_HINT=bf16,NPU_TILES=2")
    assert peer.config == {"INFERENCE_PRECISION_HINT": "bf16", "NPU_TILES": "2"}
    assert parse_peer(peer.name) == peer


@pytest.mark.parametrize("name", ["ours", "ours-int3", "vllm-fp16", "ours-int8:NPU_TILES"])
def test_an_unknown_name_is_rejected_with_the_known_ones(name: str) -> None:
    with pytest.raises(ValueError, match=r"openvino-int8|KEY=VALUE"):
        parse_peer(name)


def test_peers_with_weights_of_equal_width_are_compared() -> None:
    pairs = {
        (ours.precision, other.name)
        for ours in every_peer()
        for other in every_peer()
        if ours.is_ours and other.kind == "llama.cpp" and other.answers_to(ours)
    }
    assert pairs == {
        ("fp16", "llama.cpp-f16"),
        ("int8", "llama.cpp-q8_0"),
        ("int4", "llama.cpp-q4_0"),
    }
