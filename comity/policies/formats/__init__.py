"""One module per policy format."""
