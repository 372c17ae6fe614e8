"""Devices: the protocols that they satisfy, and npuw's three devices.

Begin with ``protocols``, which defines devices and compilers. ``level_zero`` is the NPU,
``interpreter`` computes in numpy, ``openvino`` in OpenVINO's CPU plugin; ``compiler_layer`` has
the compiler.
"""
