"""Decoding: from a prompt to texts.

language_model      the request that reads tokens and returns logits
stored_tokens       the tokens of a request, after which the next prompt continues
generated_sequence  one text as it grows: tokens, text, the reasons to end
reads               one prompt, and its decoding in steps: tokens to read, for their logits
one_sequence        greedy decoding or sampling of one text; the module to read first
scored_prompt       log-probabilities of a prompt's tokens, before a method continues it
drafted             one text with candidates for its next tokens, which are verified together
drafters            the candidates, and their number
payoff              whether candidates save time, by measured times
beams               search for the likeliest texts
methods             choice among these; several texts, sampled side by side
stopwatch           measured times
"""
