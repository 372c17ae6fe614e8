"""Native engines: programs lowered to tables of kernels for this host.

Begin with ``executor``. ``lower`` builds tables, ``dispatch`` runs them on threads; ``dma``,
``dpu`` and ``shave`` emit the kernels, which ``jit`` compiles.
"""

from driver_layer.engines.native.executor import NativeExecutor

__all__ = ["NativeExecutor"]
