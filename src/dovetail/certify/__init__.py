"""Certificates: why a kernel may be trusted. Three kinds of checks, none of which trusts the code that made the kernel.

``cover``    tiles reach every point once, in an order that keeps the program's meaning        by isl, for all points
``fits``     every operation is done by an instruction that fits there                         by unification and isl
``exact``    program and nest agree on a small instance (``shrink``)                           by evaluation in integers
``emitted``  the machine code agrees with the program at elements of every kind of tile        by running it
"""
