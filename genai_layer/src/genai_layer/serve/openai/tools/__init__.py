"""Calls of functions that a model writes into its text.

call      a call of a function
offer     functions that a request offers, and the choice among them
forms     forms in which models write calls, chosen by the chat template
grammar   grammar of a text with calls
readers   calls and other text of a growing text
"""
