"""Rules about elements of a page, where they differ from those about the page."""
