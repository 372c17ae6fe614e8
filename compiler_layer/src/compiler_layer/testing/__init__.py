"""A public harness for FileCheck tests of passes, also those of other packages.

Begin with ``pass_test``: it runs the passes that a ``.mlir`` file names, and compares the numbers.
"""
