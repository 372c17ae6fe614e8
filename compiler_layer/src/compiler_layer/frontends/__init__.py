"""Readers of models, all to the same stateful graph; begin with ``read_ir`` or ``read_folder``.

openvino_ir  ``openvino_model.xml`` with its ``.bin``
huggingface  a folder with ``config.json`` and ``*.safetensors``
"""
