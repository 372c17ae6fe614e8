"""SHAVE programs, compiled to kernels of the host.

``translate`` combines ``windows`` (operands of a program) and ``values`` (its computation), plans
with ``shapes`` and ``passes``, and ``kernel`` writes the code.
"""

from driver_layer.engines.native.shave.translate import Operand, Translated, translate

__all__ = ["Operand", "Translated", "translate"]
