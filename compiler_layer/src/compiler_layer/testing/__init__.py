"""What tests of passes need; public, so that passes of others can be tested the same way."""
