"""The rules that come with Dovetail, as data."""
