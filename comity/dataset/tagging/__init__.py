"""Tags for records that somebody else has made (docs/existing-data.md)."""
