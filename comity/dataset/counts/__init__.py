"""The counts of passes, and what they amount to."""
