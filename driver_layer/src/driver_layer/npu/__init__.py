"""The simulated NPU: its memory, CMX, barriers and management core."""
