"""Whether what a tag says is still so."""
