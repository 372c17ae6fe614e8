"""Grammars of structured output: translation, compilation, and the masks of a generation.

``structural_tag`` translates the JSON form of a configuration to ``expressions``, with the help of
``regex``, ``ebnf`` and ``json_schema``, whose keywords ``schema_rules`` rewrites, and whose merged
schemas ``merges`` bounds. ``compiler``, the
module to read first, writes these for llguidance, and joins the steps; ``guided_tokenizer`` hands
over the tokens, and ``constraint`` masks the logits.
"""
