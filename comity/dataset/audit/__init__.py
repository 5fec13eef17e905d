"""The audit of a dataset: the answers of its maker to publishers, auditors and authorities."""
