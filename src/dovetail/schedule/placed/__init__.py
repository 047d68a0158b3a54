"""Scheduling for memories that hold what is put there: regions, copies, double buffers, instruction calls."""
