"""The middlewares of the add-on."""
