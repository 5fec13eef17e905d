"""Evidence beside a dataset: the policies that decided, and the records that were refused."""
