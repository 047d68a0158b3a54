"""Pattern mapping: what a model's graph says, found as a pattern of plain operators, and mapped to something better.

pattern (text, or a Python function traced) -> ``Form``         form, text, show, trace, pattern, file
graph -> index -> every match of every pattern                  index, needle, search, chain, guards, find
matches -> those that are applied, by cost                      cost, choose
match -> what takes its place, checked by evaluating both       make, own, check, apply
what nearly matched, and which operand parted                   near
"""
