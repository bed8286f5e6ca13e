"""People who annotate: projects, sessions, previews and suggestions, trained rounds beside them."""
