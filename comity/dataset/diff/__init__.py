"""The differences between the permissions of two datasets."""
