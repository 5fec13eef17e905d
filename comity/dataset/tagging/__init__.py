"""Tags for records of other programs (docs/existing-data.md)."""
