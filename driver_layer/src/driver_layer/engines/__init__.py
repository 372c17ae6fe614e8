"""Engines that execute tasks: ``native`` in machine code, ``reference`` in numpy.

Begin with ``contract`` (single tasks) and ``executor`` (whole programs); ``choose`` selects one.
"""
