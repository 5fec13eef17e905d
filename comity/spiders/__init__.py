"""The ready spiders."""
