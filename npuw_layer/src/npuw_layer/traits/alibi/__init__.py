"""ALiBi: biases of attention by distance, looked up by cache position."""
