"""Traits: what some language models have beside K and V, one folder each."""
