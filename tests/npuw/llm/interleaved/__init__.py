"""Conversations that interleave at random, held against one unchunked run of the interpreter."""
