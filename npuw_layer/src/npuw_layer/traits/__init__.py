"""Traits: extensions of some language models in addition to K and V, one folder each.

Each folder exports a ``TRAIT`` (``llm.trait``), and has a module ``graph`` if it changes graphs
(``graph_trait``). Deleting a folder deletes the trait; ``llm`` names none.
"""
