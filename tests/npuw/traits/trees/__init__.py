"""Trees of candidates: their mask in the scores, and the rows of the accepted path."""
