"""Scripts that measure other libraries, each run in a virtual environment of its own."""
