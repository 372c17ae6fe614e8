"""Attention of ONNX Runtime (GroupQueryAttention), in its ops. Begin with ``graph``."""
