"""Randomly interleaved conversations, compared with one unchunked run of the interpreter."""
