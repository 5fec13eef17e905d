"""Terms: the uses that the tag of a record permits, and for how long."""
