"""Rules for a generation's parameters: contradictions first, then unsupported methods.

Source: docs/reference/genai.md#validation. The rules for contradictions and their order are
openvino_genai's; the list of unsupported methods is ours.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from genai_layer.generation_fields import UNSET, GenerationFields

Rule = tuple[bool, str]
"""True if the parameters break the rule, and the message."""


def contradictions(fields: GenerationFields) -> Iterator[Rule]:
    """Yield the rules that hold with every runtime, in openvino_genai's order."""
    yield fields.num_return_sequences == 0, "num_return_sequences = 0: must be at least 1"
    yield from _ends(fields)
    yield (
        fields.num_return_sequences > 1 and not (fields.do_sample or fields.is_beam_search()),
        f"num_return_sequences = {fields.num_return_sequences}: several sequences need do_sample "
        "or num_beams; set one of them, or return one sequence",
    )
    yield from (_penalties_of_beams if fields.is_beam_search() else _penalties)(fields)
    if fields.do_sample:
        yield from _sampling(fields)
    if fields.is_beam_search():
        yield from _beams(fields)
    if fields.is_tree_search():
        yield from _trees(fields)
    if fields.is_assisting_generation():
        yield from _assistants(fields)
    yield (
        fields.max_ngram_size > 0 and not fields.is_prompt_lookup(),
        f"max_ngram_size = {fields.max_ngram_size}: prompt lookup needs num_assistant_tokens; set "
        "num_assistant_tokens, or max_ngram_size to 0",
    )


def unsupported(fields: GenerationFields) -> Iterator[Rule]:
    """Yield the rules for valid parameters that genai_layer cannot compute yet."""
    yield "" in fields.stop_strings, "stop_strings: a stop string must not be empty; remove it"
    yield fields.is_tree_search(), f"tree_depth = {fields.tree_depth} is not supported; set it to 0"
    yield (
        fields.structured_output_config is not None and fields.is_beam_search(),
        "structured_output_config: beam search ignores grammars; set num_beams to 1",
    )
    beyond = [value for value in fields.logit_bias.values() if not -100 <= value <= 100]
    yield bool(beyond), f"logit_bias = {beyond}: values must be from -100 to 100"
    yield (
        bool(fields.logit_bias) and fields.is_beam_search(),
        "logit_bias: beam search has no bias; leave logit_bias out, or set num_beams to 1",
    )
    yield (
        fields.return_omni_outputs,
        "return_omni_outputs = True is not supported; set it to False",
    )


def _ends(fields: GenerationFields) -> Iterator[Rule]:
    unlimited = fields.max_new_tokens == UNSET and fields.max_length == UNSET
    ended = fields.eos_token_id >= 0 or fields.stop_token_ids or fields.stop_strings
    yield (
        fields.eos_token_id >= 0 and fields.eos_token_id not in fields.stop_token_ids,
        f"eos_token_id = {fields.eos_token_id}: must be among stop_token_ids; use set_eos_token_id",
    )
    negative = [token for token in fields.stop_token_ids if token < 0]
    yield bool(negative), f"stop_token_ids = {negative}: must not be negative; remove them"
    yield (
        fields.ignore_eos and unlimited,
        "ignore_eos: nothing ends the generation; set max_new_tokens or max_length",
    )
    yield (
        unlimited and not ended,
        "nothing ends the generation; set max_new_tokens, eos_token_id or a stop string",
    )
    yield (
        fields.max_new_tokens == 0 and not fields.echo,
        "max_new_tokens = 0: must be at least 1",
    )
    yield (
        fields.min_new_tokens > fields.max_new_tokens,
        f"min_new_tokens = {fields.min_new_tokens}: exceeds max_new_tokens; lower it",
    )


def _penalties(fields: GenerationFields) -> Iterator[Rule]:
    for name in ("frequency_penalty", "presence_penalty"):
        value = getattr(fields, name)
        yield not -2 <= value <= 2, f"{name} = {value}: must be from -2 to 2"
    value = fields.repetition_penalty
    yield (
        not np.float32(value) > 0,
        f"repetition_penalty = {value}: must be positive in f32; for no penalty, set it to 1",
    )


def _penalties_of_beams(fields: GenerationFields) -> Iterator[Rule]:
    for name, neutral in (
        ("frequency_penalty", 0.0),
        ("presence_penalty", 0.0),
        ("repetition_penalty", 1.0),
    ):
        value = getattr(fields, name)
        yield (
            value != neutral,
            f"{name} = {value}: beam search has no penalties; set it to {neutral}",
        )


def _sampling(fields: GenerationFields) -> Iterator[Rule]:
    top_p, temperature, min_p = fields.top_p, fields.temperature, fields.min_p
    yield not 0 < top_p <= 1, f"top_p = {top_p}: must be above 0 and at most 1"
    yield (
        not np.float32(temperature) > 0,
        f"temperature = {temperature}: must be positive in f32; for the likeliest token, set "
        "do_sample to False",
    )
    yield not 0 <= min_p < 1, f"min_p = {min_p}: must be at least 0 and below 1"


def _beams(fields: GenerationFields) -> Iterator[Rule]:
    beams, groups, sequences = fields.num_beams, fields.num_beam_groups, fields.num_return_sequences
    yield (
        groups == 0 or beams % groups != 0,
        f"num_beams = {beams}: must be a multiple of num_beam_groups = {groups}",
    )
    yield (
        beams < sequences,
        f"num_beams = {beams}: fewer than num_return_sequences = {sequences}; raise num_beams",
    )
    yield fields.do_sample, f"num_beams = {beams}: beams are not sampled; set do_sample to False"
    yield fields.no_repeat_ngram_size == 0, "no_repeat_ngram_size = 0: must be at least 1"
    yield (
        groups > 1 and fields.diversity_penalty == 0,
        "diversity_penalty = 0: groups of beams would be equal; set it, or num_beam_groups to 1",
    )
    yield (
        groups == 1 and fields.diversity_penalty != 0,
        f"diversity_penalty = {fields.diversity_penalty}: needs several groups of beams; set it to "
        "0, or raise num_beam_groups",
    )


def _trees(fields: GenerationFields) -> Iterator[Rule]:
    depth, drafted = fields.tree_depth, fields.num_assistant_tokens
    yield fields.do_sample, f"tree_depth = {depth}: trees are not sampled; set do_sample to False"
    yield fields.num_beams != 1, f"tree_depth = {depth}: excludes beam search; set num_beams to 1"
    yield fields.branching_factor == 0, "branching_factor = 0: must be at least 1 in a tree"
    yield drafted is None, f"tree_depth = {depth}: num_assistant_tokens is not set; set it"
    yield drafted == 0, "num_assistant_tokens = 0: must be at least 1 in a tree"
    yield (
        (drafted or 0) < depth,
        f"num_assistant_tokens = {drafted}: must be at least tree_depth = {depth}",
    )


def _assistants(fields: GenerationFields) -> Iterator[Rule]:
    yield (
        fields.is_beam_search() or fields.num_return_sequences > 1,
        "an assistant drafts for one sequence; set num_beams and num_return_sequences to 1",
    )
    yield (
        fields.assistant_confidence_threshold > 0 and (fields.num_assistant_tokens or 0) > 0,
        "assistant_confidence_threshold and num_assistant_tokens exclude each other; set one",
    )
