"""Support that is no driver, and that all layers above share: files, waiting, commands.

Begin with ``files``, through which every named file is opened.
"""
