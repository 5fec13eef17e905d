"""Tags of records: where they are, and how they are read."""
