"""Machines as files: loading, checking, and detecting the one we run on. The only place that names a machine."""
