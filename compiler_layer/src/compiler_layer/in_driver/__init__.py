"""The compiler in the driver: OpenVINO's NPU plugin passes models to it through Level Zero.

container    models as the plugin passes them
build_flags  the text that accompanies a model: types, layouts and options
options      options that the plugin may set, and the compiler's options that they stand for
arguments    the requested types and layouts of inputs and outputs
weightless   blobs without weights, and the blobs that prepare the weights
query        layers that can be compiled
compiler     all of it together: the compiler that the driver finds by its entry point
"""
