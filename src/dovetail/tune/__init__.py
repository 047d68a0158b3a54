"""Search over plans: candidates from somewhere, a measure, a budget."""
