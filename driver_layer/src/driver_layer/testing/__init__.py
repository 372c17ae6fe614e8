"""What tests of the driver need, and checks that other implementations can be put through."""
