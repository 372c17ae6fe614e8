"""Layers with a state of fixed size in place of K and V: short convolutions (LFM-2).

trait            the trait, its variables, and options that states rule out: begin here
graph            ops that compute states in a static model
states           device memory of a conversation's states, their rewind, and OpenVINO variables

A state has no rows of single tokens, so a rewind reads again the tokens that the state was computed
from.

Source: docs/reference/npuw.md#tensors-of-static-models (shape of states) and
docs/reference/npuw.md#prefill, docs/reference/npuw.md#generation (times of changes).
"""

from npuw_layer.traits.linear_states.trait import TRAIT as TRAIT
