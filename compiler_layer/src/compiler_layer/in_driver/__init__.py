"""The compiler in the driver: OpenVINO's NPU plugin passes models to it through Level Zero.

serialized_model  models as the plugin passes them
build_flags       the text that accompanies a model: types, layouts and options
options           options of the plugin, and the compiler's options that they stand for
arguments         names, types and layouts of inputs and outputs
weightless        blobs without weights, and the blobs that prepare the weights
query             layers that can be compiled
compiler          the compiler that the driver finds by its entry point
"""
