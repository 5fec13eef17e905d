"""Compare the tags of records with today's policies of their sites."""
