"""The page: annotate, watch, decide."""
