"""Models of PyTorch: the ATen operators of a traced graph become a graph of ours, as far as there are conversions."""
