"""Speculative decoding: candidates for the next tokens, which the model verifies in one inference.

request       the draft model or prompt lookup of a pipeline, which makes drafters
draft_model   opening of a draft model
perf_metrics  times of both models, accepted candidates

The loop is decoding.drafted.
"""
