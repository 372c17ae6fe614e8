"""Programs in files: the cache, exported models, packages of submodels' programs.

``container`` is the file format of programs; begin there. ``cache`` keeps one program a file,
``model_blob`` whole models, ``native_blob`` models in the original plugin's format; ``package``
joins the programs of a partitioned model into one byte string; ``header`` checks all headers.
"""
