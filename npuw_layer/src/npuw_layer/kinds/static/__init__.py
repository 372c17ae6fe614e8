"""Static models on the NPU as they are: one graph, one blob, no wrapper around it.

It is what the plain NPU plugin does when NPU_USE_NPUW is not set.
"""
