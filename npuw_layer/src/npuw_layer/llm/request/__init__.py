"""Conversation: requests, tokens and logits.

Begin with ``life_cycle``, the table of states, and ``conversation``, which follows it; ``reader``,
``prefill`` and ``generate`` run the programs. docs/life-of-a-token.md lists the calls of a token.
"""
