"""Random models: graphs over most operators whose shapes fit, with data that lets results be judged."""
