"""The commands of `comity`, a module each: add_options(parser) and run(options), which returns the exit status."""
