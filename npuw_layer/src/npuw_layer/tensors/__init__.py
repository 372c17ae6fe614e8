"""Tensors of language models, as all packages use them. Begin with ``names``.

``token_inputs`` and ``token_outputs`` describe tensors with a row for each token; traits add more.
"""
