"""Cross-attention: K and V of what an encoder made, which prefill computes and generate reads.

trait           the trait's record: begin here
names           inputs, outputs and variables of a decoder that attends to an encoder
buffers         their memory in a conversation
variable_state  a variable as OpenVINO shows it
imported_ports  checks of programs from elsewhere

Source: fact sheet npuw §a.3 step 12, §a.4.
"""

from npuw_layer.traits.cross_attention.trait import TRAIT as TRAIT
