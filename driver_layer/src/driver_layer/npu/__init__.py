"""The simulated NPU: memory, CMX, barriers, and the management core that runs programs.

Begin with ``device``, which wires them together, and ``management``.
"""
