"""The policies of sites, one or many, for commands and spiders that fetch no pages."""
