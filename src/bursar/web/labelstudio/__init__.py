"""Label Studio integration: push the items of a round, pull annotations."""
