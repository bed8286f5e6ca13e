"""The web pages and the HTTP API: annotate, watch, decide."""
