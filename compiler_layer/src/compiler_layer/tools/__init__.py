"""Command-line tools; begin with ``npuc``.

npuc     the compiler
command  declaration of commands and their errors
"""
