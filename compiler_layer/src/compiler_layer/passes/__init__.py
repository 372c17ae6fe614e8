"""The compiler's passes: one file each, in the order of ``compiler_layer.pipeline``."""
