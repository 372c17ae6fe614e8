"""Functions and structures of the interface, as data, and the language that they are written in."""
