"""The basis of all parts of a crawl or a client: surroundings, tasks, observer, logs, output."""
