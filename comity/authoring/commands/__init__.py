"""The commands of `comity`, a module each: HELP, add_options(parser) and run(options), which returns the exit status."""
