"""Grammars of structured output: translation, compilation, and the masks of a generation.

``structural_tag`` translates the JSON form of a configuration to ``expressions``, with the help of
``regex``, ``ebnf`` and ``json_schema``; ``schema_rules`` rewrites keywords of JSON schemas, and
``merges`` bounds those that apply together. ``compiler``, the module to read first, writes the
expressions for llguidance, and joins the steps; ``guided_tokenizer`` hands over the tokens, and
``constraint`` masks the logits.
"""
