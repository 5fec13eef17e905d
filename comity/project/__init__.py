"""Commands that help to set up a project: `comity startproject`, `comity profile`."""
