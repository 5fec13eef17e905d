"""Datasets of items with their tags: files of them, what may be done with each record today, and passes over all of them."""
