"""Chat templates: which template a chat has, the messages that it gets, and its rendering.

Begin with ``templates``; ``named`` finds a folder's templates, ``rendering`` runs one in a sandbox.
``messages`` and ``generic_tools`` adapt messages to what ``support`` finds out about a template.
"""
