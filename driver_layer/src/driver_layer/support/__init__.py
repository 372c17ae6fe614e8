"""Utilities that all layers share and that do not concern the driver: files, waiting, commands.

Begin with ``files``: it opens every file that a user names.
"""
