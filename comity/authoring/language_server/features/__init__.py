"""The answers to what editors ask of a document."""
