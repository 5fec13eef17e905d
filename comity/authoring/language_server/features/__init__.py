"""What editors ask of a document, and the answers."""
