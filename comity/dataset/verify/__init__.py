"""A recheck of records: what their tags say against what sites say today."""
