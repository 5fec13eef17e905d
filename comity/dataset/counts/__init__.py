"""The counts of passes over records, and their summaries."""
