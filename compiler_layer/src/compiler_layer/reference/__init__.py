"""The meaning of each op in numpy, and an interpreter over whole models."""
