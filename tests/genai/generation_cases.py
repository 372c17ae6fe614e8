"""Generation parameters, and openvino_genai's verdicts on them.

tests/genai/test_generation_rules.py has genai_layer's verdicts; the same tables are checked with
the real package in tests/oracle/test_live_generation_config.py.
"""

from __future__ import annotations

from typing import Any

Values = dict[str, Any]

ONE: Values = {"max_new_tokens": 1}

VALID: list[Values] = [
    {"max_new_tokens": 12},
    {"max_length": 12},
    {"max_length": 0},
    {"stop_token_ids": {2}},
    {"eos_token_id": 1},
    {"eos_token_id": 1, "stop_token_ids": {1}},
    {"eos_token_id": 1, "stop_token_ids": {2}},
    {"stop_strings": {"a"}},
    {"ignore_eos": True, "max_new_tokens": 10},
    {"ignore_eos": True, "max_length": 10},
    ONE | {"min_new_tokens": 1},
    ONE | {"logprobs": 5},
    ONE | {"do_sample": True, "top_k": 1},
    ONE | {"do_sample": True, "top_k": 0},
    ONE | {"do_sample": True, "top_p": 0.5},
    ONE | {"do_sample": True, "temperature": 0.5},
    ONE | {"do_sample": True, "rng_seed": 1 << 40},
    # Without do_sample, the parameters of sampling are not read.
    ONE | {"top_k": 1},
    ONE | {"top_p": 7.0},
    ONE | {"temperature": 0.0},
    # With one beam, the parameters of beam search are not read.
    ONE | {"num_beams": 1, "num_return_sequences": 1, "echo": False},
    ONE | {"num_beams": 0},
    ONE | {"num_beam_groups": 2},
    ONE | {"no_repeat_ngram_size": 2},
    ONE | {"no_repeat_ngram_size": 0},
    ONE | {"diversity_penalty": 1.0},
    ONE | {"length_penalty": 2},
    {"max_new_tokens": 0, "echo": True},
    ONE | {"do_sample": True, "num_return_sequences": 2},
    ONE | {"num_beams": 2},
    ONE | {"num_beams": 2, "num_return_sequences": 1},
    ONE | {"num_beams": 2, "num_return_sequences": 2},
    ONE | {"num_beams": 4, "num_beam_groups": 2, "diversity_penalty": 1.0},
    ONE | {"num_beams": 4, "length_penalty": 1.0},
    ONE | {"num_beams": 4, "no_repeat_ngram_size": 2},
    # Without an assistant, its parameters are not read.
    ONE | {"num_assistant_tokens": 0},
    ONE | {"assistant_confidence_threshold": -0.5},
    ONE | {"assistant_confidence_threshold": 0.5},
    ONE | {"num_assistant_tokens": 2},
    ONE | {"num_assistant_tokens": 2, "max_ngram_size": 2},
    ONE | {"branching_factor": 0},
    # Models without images do not read these.
    ONE | {"pruning_ratio": 500},
    ONE | {"relevance_weight": 7.0},
]
"""Parameters that both accept."""

UNSUPPORTED: list[tuple[Values, str]] = [
    (ONE | {"tree_depth": 2, "num_assistant_tokens": 3}, "tree_depth = 2"),
    (ONE | {"return_omni_outputs": True}, "return_omni_outputs = True"),
]
"""Parameters that openvino_genai validates; and the part that genai_layer names when rejecting."""

SAMPLED = ONE | {"do_sample": True}
BEAMS = ONE | {"num_beams": 2}
TREE = ONE | {"tree_depth": 2, "num_assistant_tokens": 4}

REJECTED: list[tuple[Values, str]] = [
    ({"num_return_sequences": 0}, "num_return_sequences = 0"),
    ({"stop_token_ids": {-1}}, r"stop_token_ids = \[-1\]"),
    ({"eos_token_id": 3, "ignore_eos": True}, "ignore_eos"),
    ({}, "nothing ends the generation"),
    ({"max_new_tokens": 0}, "max_new_tokens = 0"),
    ({"max_new_tokens": 10, "min_new_tokens": 20}, "min_new_tokens = 20"),
    ({"max_new_tokens": 0, "echo": True, "min_new_tokens": 1}, "min_new_tokens = 1"),
    (ONE | {"num_return_sequences": 2}, "several sequences need do_sample or num_beams"),
    (ONE | {"frequency_penalty": 3.0}, "frequency_penalty = 3.0: must be from -2 to 2"),
    (ONE | {"presence_penalty": -3.0}, "presence_penalty = -3.0: must be from -2 to 2"),
    (ONE | {"repetition_penalty": -1.0}, "repetition_penalty = -1.0: must be positive"),
    (ONE | {"repetition_penalty": 1e-46}, "repetition_penalty = 1e-46: must be positive in f32"),
    (BEAMS | {"frequency_penalty": 1.0}, "frequency_penalty = 1.0: beam search"),
    (BEAMS | {"presence_penalty": 1.0}, "presence_penalty = 1.0: beam search"),
    (BEAMS | {"repetition_penalty": 0.0}, "repetition_penalty = 0.0: beam search"),
    (SAMPLED | {"top_p": 0}, "top_p = 0"),
    (SAMPLED | {"top_p": 1.1}, "top_p = 1.1"),
    (SAMPLED | {"temperature": -1.0}, "temperature = -1.0"),
    (SAMPLED | {"temperature": 1e-46}, "temperature = 1e-46: must be positive in f32"),
    (SAMPLED | {"min_p": 1.0}, "min_p = 1.0"),
    (ONE | {"num_beams": 3, "num_beam_groups": 2}, "multiple of num_beam_groups = 2"),
    (BEAMS | {"num_return_sequences": 3}, "fewer than num_return_sequences = 3"),
    (BEAMS | {"do_sample": True}, "beams are not sampled"),
    (BEAMS | {"no_repeat_ngram_size": 0}, "no_repeat_ngram_size = 0"),
    (BEAMS | {"num_beam_groups": 2, "diversity_penalty": 0.0}, "diversity_penalty = 0"),
    (BEAMS | {"diversity_penalty": 1.0}, "needs several groups"),
    (TREE | {"do_sample": True}, "trees are not sampled"),
    (TREE | {"num_beams": 2}, "excludes beam search"),
    (TREE | {"num_beams": 0}, "excludes beam search"),
    (TREE | {"branching_factor": 0}, "branching_factor = 0"),
    (ONE | {"tree_depth": 2}, "num_assistant_tokens is not set"),
    (TREE | {"num_assistant_tokens": 0}, "num_assistant_tokens = 0"),
    (TREE | {"tree_depth": 5}, "num_assistant_tokens = 4: must be at least tree_depth = 5"),
    (SAMPLED | {"num_assistant_tokens": 2, "num_return_sequences": 2}, "for one sequence"),
    (
        SAMPLED | {"assistant_confidence_threshold": 1.0, "num_return_sequences": 2},
        "for one sequence",
    ),
    (BEAMS | {"num_assistant_tokens": 2}, "for one sequence"),
    (
        ONE | {"num_assistant_tokens": 2, "assistant_confidence_threshold": 1.0},
        "exclude each other",
    ),
    (ONE | {"max_ngram_size": 1}, "max_ngram_size = 1"),
    (ONE | {"max_ngram_size": 1, "num_assistant_tokens": 0}, "max_ngram_size = 1"),
    (ONE | {"max_ngram_size": 1, "assistant_confidence_threshold": 0.5}, "max_ngram_size = 1"),
]
"""Parameters that both reject, and a part of genai_layer's message."""

WRONG: Values = {
    "num_return_sequences": 0,
    "eos_token_id": 4,
    "ignore_eos": True,
    "min_new_tokens": 2,
    "frequency_penalty": 3.0,
    "presence_penalty": 3.0,
    "repetition_penalty": 0.0,
    "do_sample": True,
    "top_p": 0.0,
    "temperature": 0.0,
    "min_p": 1.0,
    "num_beam_groups": 2,
    "no_repeat_ngram_size": 0,
    "tree_depth": 5,
    "num_assistant_tokens": 0,
    "branching_factor": 0,
    "assistant_confidence_threshold": 0.5,
    "max_ngram_size": 1,
}
"""Attributes that break most rules at once."""

REPAIRS: list[tuple[Values, str, str]] = [
    ({}, "num_return_sequences = 0", "must be greater than 0"),
    ({"num_return_sequences": 4}, "eos_token_id = 4: must be among", "must contain 'eos_token_id'"),
    ({"stop_token_ids": {4, -1}}, "stop_token_ids = ", "it contains a value -1"),
    ({"stop_token_ids": {4}}, "ignore_eos", "ignore_eos is true"),
    ({"max_new_tokens": 0}, "max_new_tokens = 0", "'max_new_tokens' must be greater"),
    ({"max_new_tokens": 1}, "min_new_tokens = 2", "min_new_tokens must be less"),
    ({"min_new_tokens": 0, "do_sample": False}, "several sequences need", "can be more than 1"),
    ({"do_sample": True}, "frequency_penalty = 3.0", "'frequence_penalty'"),
    ({"frequency_penalty": 1.0}, "presence_penalty = 3.0", "'presence_penalty'"),
    ({"presence_penalty": 1.0}, "repetition_penalty = 0.0", "'repetition_penalty'"),
    ({"repetition_penalty": 2.0}, "top_p = 0.0", "top_p must be"),
    ({"num_beams": 3}, "frequency_penalty = 1.0: beam search", "'frequency_penalty' is not"),
    ({"frequency_penalty": 0.0}, "presence_penalty = 1.0: beam", "'presence_penalty' is not"),
    ({"presence_penalty": 0.0}, "repetition_penalty = 2.0: beam", "'repetition_penalty' is not"),
    ({"repetition_penalty": 1.0}, "top_p = 0.0", "top_p must be"),
    ({"top_p": 1.0}, "temperature = 0.0", "temperature must be"),
    ({"temperature": 1.0}, "min_p = 1.0", "min_p must be"),
    ({"min_p": 0.0}, "num_beams = 3: must be a multiple", "should be divisible"),
    ({"num_beam_groups": 3}, "fewer than num_return_sequences", "must be greater equal"),
    ({"num_return_sequences": 3}, "beams are not sampled", "Beam search with sampling"),
    ({"do_sample": False}, "no_repeat_ngram_size = 0", "'no_repeat_ngram_size' must be"),
    ({"no_repeat_ngram_size": 2}, "diversity_penalty = 0", "should not be zero"),
    ({"num_beam_groups": 1, "diversity_penalty": 1.0}, "needs several groups", "'num_beam_groups'"),
    ({"diversity_penalty": 0.0}, "excludes beam search", "incompatible with beam search"),
    ({"do_sample": True, "num_beams": 1}, "trees are not sampled", "incompatible with do_sample"),
    ({"do_sample": False, "num_return_sequences": 1}, "branching_factor = 0", "'branching_factor'"),
    ({"branching_factor": 1}, "num_assistant_tokens = 0", "must be > 0"),
    ({"num_assistant_tokens": 1}, "must be at least tree_depth = 5", "must be >= 'tree_depth'"),
    ({"num_assistant_tokens": 9}, "exclude each other", "mutually exclusive"),
    ({"do_sample": True, "tree_depth": 0, "num_return_sequences": 2}, "one seq", "Beam search and"),
    ({"num_assistant_tokens": 0, "num_return_sequences": 1}, "max_ngram_size = 1", "prompt lookup"),
]
"""Changes of WRONG, one after the other; and what both then object to, ours first."""
