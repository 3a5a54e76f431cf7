"""The context cache of one machine, on LMDB."""
