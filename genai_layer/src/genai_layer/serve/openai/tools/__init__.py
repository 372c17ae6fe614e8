"""Calls of functions that a model writes into its text.

calls     calls in the forms of models, chosen by the chat template; calls of a growing text
offer     functions that a request offers, the choice among them, and the grammar of their calls
"""
