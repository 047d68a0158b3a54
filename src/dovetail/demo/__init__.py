"""``make demo``: a model and four programs made here, compiled for this machine, checked and timed."""
