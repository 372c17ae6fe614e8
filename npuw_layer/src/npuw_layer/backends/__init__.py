"""Devices: the protocols that they satisfy, and the three that npuw has.

``protocols`` says what a device and a compiler are; begin there. ``level_zero`` is the NPU,
``interpreter`` computes in numpy, ``openvino`` in OpenVINO's CPU plugin; ``compiler_layer`` has
npuc.
"""
