"""One conversation: its requests, tokens and logits.

Begin with ``conversation``; ``prefill`` and ``generate`` run the programs.
"""
