"""The parts of a decoder as ``ov`` ops, in the patterns that the exporter writes."""
