"""The pace: how often, and how many at a time, hosts are asked."""
