"""Results as values; the printed forms are those of openvino_genai 2026.4.1.0."""

from __future__ import annotations

import numpy as np

from genai_layer import DecodedResults


def test_one_text_prints_as_itself() -> None:
    assert str(DecodedResults(["An NPU,"], [0.0])) == "An NPU,"


def test_several_texts_print_with_their_scores() -> None:
    scores = [-0.01984780840575695, -1.0418660640716553]
    results = DecodedResults(["An NPU,", "The NPU has"], scores)
    assert str(results) == "-0.019848: An NPU,\n-1.041866: The NPU has"


def test_results_may_be_empty() -> None:
    results = DecodedResults()
    assert (results.texts, results.scores, results.finish_reasons, results.parsed) == ([],) * 4


def test_metrics_of_speculative_decoding_are_none(speaks) -> None:
    pipe = speaks("hey")
    decoded, encoded = pipe.generate(["?"]), pipe.generate(np.array([[4]], np.int64))
    assert decoded.extended_perf_metrics is encoded.extended_perf_metrics is None
    assert decoded.parsed == []
