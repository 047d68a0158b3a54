"""Models: a graph with its data -> one native function; sessions, files, and processes that compile."""
