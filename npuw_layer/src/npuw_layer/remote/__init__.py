"""Tensors in device-accessible memory: bound in place, never copied.

Begin with ``context``. The names are OpenVINO's (``RemoteContext``, ``RemoteTensor``) and those of
its NPU plugin (``MEM_TYPE``, ``MEM_HANDLE``, ``TENSOR_TYPE``, ``FILE_DESCRIPTOR``, ``L0_CONTEXT``).
"""
