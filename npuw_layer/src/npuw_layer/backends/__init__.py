"""Compilers and devices of this project: Level Zero, the real OpenVINO, the interpreter.

Begin with ``protocols``: what a compiler and a device of your own must do.
"""
