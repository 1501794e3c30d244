"""Recorded episodes as data sets of other libraries: Parquet for Hugging Face's `datasets`, chats for supervised
fine-tuning, Minari."""
