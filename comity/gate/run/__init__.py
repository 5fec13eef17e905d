"""Surroundings, tasks, observer, logs and output: all other parts of a crawl, or of a client without one, stand on them."""
