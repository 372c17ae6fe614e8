"""ALiBi: biases of attention by distance, looked up by token index. Begin with ``graph``."""
