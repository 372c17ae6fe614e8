"""Attention of ONNX Runtime (GroupQueryAttention), taken apart into its ops."""
