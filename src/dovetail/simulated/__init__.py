"""Programs on simulated machines: planned, certified, and run and timed by the simulator."""
