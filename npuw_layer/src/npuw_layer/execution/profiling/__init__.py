"""PERF_COUNT: what the programs of an inference take on the device.

``backends.recording`` has the times of layers, and who listens to them.

``labels``     programs that say whose they are
``profile``    what a request keeps of its inferences, and tells: NPU_PROFILING_TYPE
``info``       OpenVINO's ``ProfilingInfo``

Source: fact sheet npuw §e.5; names and rules are those of OpenVINO's NPU plugin and of NPUW. What
is ours: times are those of the simulated device, and a split language model tells of its static
models, where NPUW says nothing.
"""
