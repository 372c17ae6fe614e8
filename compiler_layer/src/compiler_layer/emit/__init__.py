"""From a schedule to the bytes of a blob."""
