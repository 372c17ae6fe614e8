"""Layers that keep a state of fixed size in the place of K and V: short convolutions (LFM-2).

trait               the trait's record: begin here
names               the variables that are states
short_convolution   the ops that compute them in a static model
check               options that they rule out
states              their memory in a conversation, and how it goes back
variable_state      a state as OpenVINO shows it
imported_ports      checks of programs from elsewhere

A state says nothing of single tokens: a conversation that goes back reads anew the tokens that the
state was made of.

Source: fact sheet npuw §a.6 (they keep their own shape), §c.2, §c.4 and §c.6 (when they change).
"""

from npuw_layer.traits.linear_states.trait import TRAIT as TRAIT
