"""What the words of all vocabularies say of the uses of a page."""
