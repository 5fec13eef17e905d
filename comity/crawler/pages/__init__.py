"""What came back, and what may be done with it."""
