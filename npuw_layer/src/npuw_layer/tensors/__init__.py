"""Tensors of language models as all shelves know them. Begin with ``names``.

``token_inputs`` and ``token_outputs`` have a row for each token; traits add some of their own.
"""
