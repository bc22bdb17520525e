"""Model files, and how they are made: writers, rows of operators, networks."""
