"""The driver for programs in C: ``libze_intel_npu.so.1`` and ``libze_loader.so.1`` over ``ze``.

Both names are one library. ``description`` has all functions and structures of the interface; the C
source (``emit_c``) and the declarations of the structures (``declarations``) are made from it. The
C side passes each call's arguments to Python as numbers; ``calls`` converts handles, structures and
pointers, and calls the function of the same name in ``driver_layer.ze``. ``build`` compiles the
library, ``serve`` connects a process that has loaded it.
"""

CALLS_VARIABLE = "NPU_LOG_CALLS"
"""Environment variable that turns the log of calls on, in any process that loads the library."""
