"""Our own implementations of the ports, one file for each neighbour."""
