"""Ways to say what is to be computed."""
