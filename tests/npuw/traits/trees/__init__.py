"""Trees of candidates: what is added to scores, and what stays of rows."""
