"""The tags of records: their places, and their reading."""
