"""A complete compiled model of any kind as one file.

    checks        checks of an export, before anything is compiled
    exported      export of programs, weights and their origin to a file
    imported      import from a file, which is not trusted
    weight_files  files with the weights of a blob without weights

Each kind of model adds its own content: ``llm.exported`` and ``llm.imported``,
``kinds.static.exported`` and ``kinds.static.imported``.

Source: fact sheet npuw §d (content of NPUW's blobs), genai §c.2 (EXPORT_BLOB).
"""
