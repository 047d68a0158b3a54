"""One script per question; ``python -m benchmarks.run_all`` runs them all."""
