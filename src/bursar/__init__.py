"""Bursar spends a label budget: which items to label, for which tasks, and what that buys."""
