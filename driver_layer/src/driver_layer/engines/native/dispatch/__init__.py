"""Runs native tables: a dispatcher in native code, and the threads that it runs on."""
