"""One representation of a resource: its text, its tree and its selectors."""
