"""Readers of model files; all return the same kind of graph. See ``read_ir`` and ``read_folder``.

openvino_ir  ``openvino_model.xml`` with its ``.bin``
huggingface  a folder with ``config.json`` and ``model.safetensors``, or shards
"""
