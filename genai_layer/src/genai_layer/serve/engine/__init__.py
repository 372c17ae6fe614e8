"""Loaded models behind an asyncio interface.

contract     data that the endpoints receive
text_model   language model: it checks requests, bounds its queue, and has them run
stepper      steps of a pipeline, in a thread
running      request that was accepted
text_tasks   models of embeddings and ranks, which read one input after the other
speech       speech recogniser
activity     work in progress, and its end at the shutdown; parts that all models share
times        times of a request, for the metrics; rate of completed requests
"""
