"""The operators of models, each a short function to a program, and the programs of graphs made of them."""
