"""A simulated Level Zero NPU driver, and the NPU that it drives.

Import the subpackages: ``driver_layer.ze`` is the driver's interface, ``driver_layer.abi`` the
binary contract between compiler and hardware. Importing this package loads neither.
"""

__version__ = "0.1.0"
