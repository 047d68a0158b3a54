"""Rules as data: one matcher, their application, strategies, and derivations that can be read."""
