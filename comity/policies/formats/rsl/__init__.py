"""RSL 1.0, Really Simple Licensing."""
