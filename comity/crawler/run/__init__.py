"""What all parts of a crawl, or of a client without one, stand on: its surroundings, tasks, observer, logs and output."""
