"""Usage preferences of the IETF: short strings, and the dictionaries of Content-Usage."""
