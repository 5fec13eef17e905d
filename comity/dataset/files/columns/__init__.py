"""Files of records in Arrow columns: the types of the columns, and Parquet."""
