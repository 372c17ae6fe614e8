"""What computes inside the device: interchangeable sets of engines behind one contract."""
