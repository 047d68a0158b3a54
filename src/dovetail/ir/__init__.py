"""The languages of Dovetail: programs, fits, plans, nests, certificates. Data only; no search, no code generation."""
