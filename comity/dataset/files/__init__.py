"""Files of records, in every format."""
