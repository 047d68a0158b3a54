"""What every level stands on: errors, dtypes, limits."""
