"""Published experiments and our own, one file or a few each; a study is found by being in this package."""
