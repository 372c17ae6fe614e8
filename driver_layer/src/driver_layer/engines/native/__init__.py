"""The native engines: kernels made for the host, and a dispatcher that is not Python."""

from driver_layer.engines.native.executor import NativeExecutor

__all__ = ["NativeExecutor"]
