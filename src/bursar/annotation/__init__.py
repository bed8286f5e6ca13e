"""Campaigns with human annotators: projects, sessions, previews, suggestions, and the training process."""
