"""The commands of `comity`, a module each: `add_options(parser)`, `run(options) -> status`."""
