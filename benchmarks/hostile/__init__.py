"""Mutated model files: none may crash, hang, eat memory, or end in anything but success or a typed error."""
