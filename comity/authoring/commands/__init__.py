"""Commands of the `comity` tool."""
