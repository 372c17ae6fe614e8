"""Layers that keep a state of fixed size in the place of K and V: short convolutions (LFM-2).

names               which variables they are
graph               passes of static models
short_convolution   the pass that lets convolutions go on behind their states
check               which options they rule out
states              where a conversation has them, and how it goes back
recall              what is read anew then
variable_state      how OpenVINO shows them
imported_ports      what programs from elsewhere must have

Their state says nothing of single tokens: who goes back has to read anew what it was made of.

Source: fact sheet npuw §a.6 (they keep their own shape), §c.2, §c.4 and §c.6 (when they change).
"""
