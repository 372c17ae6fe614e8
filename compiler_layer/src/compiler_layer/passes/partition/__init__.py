"""Cuts a model into parts that run one after another, around groups of ops that stand alone.

enclosed   what a group must have besides, to run as one
stretches  groups of as many ops, in a row
parts      which op goes to which part, and what goes from part to part
row_wise   which ops compute each row by itself
row_blocks groups of these, as large as they can be
row_tiles  a model of such ops for fewer rows
equal      parts that differ in weights and names alone: calls of one function

It is not a pass: what comes out are models of their own, each to be compiled by itself.
"""
