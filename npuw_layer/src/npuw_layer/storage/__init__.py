"""Programs in files: the cache, exported models, containers of submodels' programs.

``container`` is the file format of programs; begin there. ``cache`` stores one program per file,
``model_blob`` complete models, ``native_blob`` models in the format of OpenVINO's NPU plugin;
``program_set`` joins the programs of a partitioned model into one byte string.
"""
