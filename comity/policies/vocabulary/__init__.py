"""The terms of all vocabularies, and their meaning for the uses of a page."""
