"""Items on their way out: tags, cuts, media, logs."""
