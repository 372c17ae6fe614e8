"""Continuous batching: requests that join, generate side by side, and leave.

pipeline       the public class
constructor    forms of its constructor
compiled       the compiled model, and how many sequences run at a time
generate_call  forms of generate
media          images and videos of prompts
prompts        prompts as the language model reads them
vision         models of images and their prompts
new_requests   requests made of prompts and parameters
request        one prompt to generate from, and its results
handle         the caller's view of a request
status         states of a request
outputs        tokens of a request, step by step
generation     a request that runs: one decoding method, step by step
places         runtime requests of the running generations
slot_request   a conversation of a runtime that batches, as a runtime request
observer       what the runtime shows, and which request has which place
scheduler      which requests run: first come, first served
metrics        numbers of requests, and how full their caches are
results        results of generate
"""
