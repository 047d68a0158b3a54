"""Instruction mapping: program and target -> every fit, and a misfit where there is none.

``find`` searches, ``prove`` shows that a fit reaches every contribution exactly once, ``display`` words both.
"""
