"""Runs what the code generator made: loaded code, threads, arguments, and the cache on disk."""
