"""Public harness for FileCheck tests of passes, including passes of other packages.

Begin with ``pass_test``: it runs the passes that a ``.mlir`` file names, and compares results.
"""
