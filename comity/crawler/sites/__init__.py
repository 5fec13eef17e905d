"""The policies of sites for commands and spiders that crawl nothing: of one, and of many."""
