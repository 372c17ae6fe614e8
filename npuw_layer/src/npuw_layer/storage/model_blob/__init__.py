"""A whole compiled model as one file, whatever kind of model it is.

    checks        what can be exported, said before anything is compiled
    exported      programs, weights and what they were made of, into a file
    imported      the same from a file that may come from anywhere and is not believed
    weight_files  where a blob without weights finds them

Each kind of model adds what it is made of: ``llm.exported`` and ``llm.imported``,
``kinds.static.exported`` and ``kinds.static.imported``.

Source: fact sheet npuw §d (what the original's blobs hold), genai §c.2 (EXPORT_BLOB).
"""
