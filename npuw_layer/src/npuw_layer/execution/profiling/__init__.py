"""PERF_COUNT: times of an inference's programs on the device.

``backends.recording`` has the times of layers, and their listeners.

``labels``     programs labelled with their submodel
``profile``    a request's record of its inferences: NPU_PROFILING_TYPE
``info``       OpenVINO's ``ProfilingInfo``

Source: docs/reference/npuw.md#profiling; names and rules are those of OpenVINO's NPU plugin and of
NPUW. Ours: times are those of the simulated device, and a split language model reports its static
models, where NPUW reports nothing.
"""
