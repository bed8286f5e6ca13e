"""Label Studio, both ways: what a round asks for goes there, what people say there comes back."""
