"""Models of the server: loaded on demand, and unloaded to make room.

spec      a model as the command line names it; settings of a server
opening   a loaded model of each kind
registry  loaded models
"""
