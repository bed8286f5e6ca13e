"""Research about Bursar, run from the repository: studies, benchmarks and their results."""
