"""`comity dataset`: one module for each group of actions, and `command` with the command itself."""
