"""The uses that the tag of a record permits, their conditions, and their ends."""
