"""Rows of images (DeepStack) that are added to hidden states."""
