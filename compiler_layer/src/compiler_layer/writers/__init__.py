"""The way back: models as files that others read."""
