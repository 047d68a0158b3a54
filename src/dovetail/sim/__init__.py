"""The simulator: a nest on a machine that a target file describes; ``functional`` for results, ``timed`` for cycles."""
