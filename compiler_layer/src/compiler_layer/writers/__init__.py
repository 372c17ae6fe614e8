"""Writers of models as files; begin with ``openvino_ir``.

files          complete files or none
stored_values  bytes of constants, converted block by block
"""
