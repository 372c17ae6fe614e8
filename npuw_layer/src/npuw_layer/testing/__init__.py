"""For those who bring a compiler or a device of their own: what it must do, as checks."""
