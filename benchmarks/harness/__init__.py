"""The harness: each system in its own process, all but the timed one stopped, ratios taken round by round."""
