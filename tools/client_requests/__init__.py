"""Clients whose requests are recorded, a module each.

server     recording server
replies    its replies, by rule

A client's module has:

CLIENT         name of the client, as its files say it
DISTRIBUTION   Python's distribution whose version they say
version        optional: function that returns the version of a client of another kind
CASES          functions by name of a case; each sends requests to a base URL, http://HOST:PORT/v1
REPLIES        optional: replies of paths that ``replies`` does not know
"""
