"""Cross-attention: K and V of encoder states, computed by prefill and read by generate.

trait           the trait, with checks of imported programs: begin here
names           inputs, outputs and variables of a decoder that attends to an encoder
buffers         device memory of a conversation, and K or V as an OpenVINO variable

Source: docs/reference/npuw.md#whisper.
"""

from npuw_layer.traits.cross_attention.trait import TRAIT as TRAIT
