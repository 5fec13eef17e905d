"""The pace: how often hosts are asked, and how many requests are in flight at a time."""
