"""Models of the server: loaded on demand, and unloaded to make room.

spec      a model as the command line names it
opening   a loaded model of each kind
registry  loaded models
"""
