"""What the tag of a record permits, and for how long."""
