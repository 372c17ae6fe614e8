"""The native engines: kernels made for the host, and a dispatcher that is not Python."""
