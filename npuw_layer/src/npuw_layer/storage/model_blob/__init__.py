"""A complete compiled model of any kind as one file.

    checks        checks of an export, before anything is compiled
    exported      export of programs, weights and their origin to a file
    imported      import from a file, which is not trusted

Each kind of model adds its own content: ``llm.compiled`` and ``llm.imported``,
``kinds.static.exported`` and ``kinds.static.imported``.

Source: docs/reference/npuw.md#model-blobs (content of NPUW's blobs) and
docs/reference/genai.md#npu-options (EXPORT_BLOB).
"""
