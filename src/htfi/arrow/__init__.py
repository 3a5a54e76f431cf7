"""Arrow tables and Parquet files by arro3, with numpy for what arro3 does not compute. pyarrow is not needed."""
