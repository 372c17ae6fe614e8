"""Programs in one file: an entry of the cache, or a whole model that was exported."""
