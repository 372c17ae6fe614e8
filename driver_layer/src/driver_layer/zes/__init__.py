"""Level Zero's system management (sysman) in Python, on the simulated NPU.

Functions have the specification's names; values come from the simulated device. The interface has
the names that begin with ``zes``.
"""

from .sysman import *
