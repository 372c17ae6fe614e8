"""The simulated NPU: memory, CMX, barriers, and the management core that runs programs.

Begin with ``device``, which connects these parts, and ``management``.
"""
