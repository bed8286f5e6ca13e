"""Published experiments, one file each: its grid, and what came of it as JSON in ``studies/``."""
