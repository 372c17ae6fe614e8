"""Traits: what some language models have beside K and V, one folder each.

Each folder exports a ``TRAIT`` (``llm.trait``), and has a module ``graph`` if it changes graphs. To
delete a folder deletes the trait; ``llm`` knows none by name.
"""
