"""Fits -> plan -> nest: the reuse and traffic models, plans, placed data and copies."""
