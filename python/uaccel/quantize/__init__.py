"""A float model made a quantised one, and how good it is."""
