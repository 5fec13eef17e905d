"""What a request is, by its fields, body and meta, and which session it belongs to."""
