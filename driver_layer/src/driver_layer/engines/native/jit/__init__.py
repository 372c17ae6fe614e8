"""Turns kernels written in LLVM IR into functions of this host, and keeps their code on disk."""
