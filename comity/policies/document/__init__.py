"""One representation of a resource, and what is asked of it."""
