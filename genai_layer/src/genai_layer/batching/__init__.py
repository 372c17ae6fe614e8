"""Continuous batching: requests that join, generate side by side, and leave.

pipeline       the public class
constructor    forms of its constructor
compiled       the compiled model, and how many sequences run at a time
generate_call  forms of generate; images and videos of prompts
vision         models of images and their prompts
new_requests   requests made of prompts and parameters; prompts as the language model reads them
request        one prompt to generate from, its results, and the caller's view of it
outputs        tokens of a request, step by step
generation     a request that runs: one decoding method, step by step
places         runtime requests of the running generations, alone or in a batching
slot_requests  conversations of a batching as requests: of one row, and of several
request_pool   requests that keep their tokens for a next prompt
observer       what the runtime shows, and which request has which place
scheduler      which requests run: first come, first served; their numbers
side_by_side   texts of one call of LLMPipeline in slots
results        results of generate
"""
