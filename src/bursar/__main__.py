"""``python -m bursar`` is the command line."""

from bursar.cli import main

main()
