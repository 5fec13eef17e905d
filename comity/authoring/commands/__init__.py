"""The commands for authors of policies, a module each: `add_options`, `run(options) -> status`."""
