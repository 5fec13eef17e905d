"""The words of all vocabularies, and what each of them says of the uses of a page."""
