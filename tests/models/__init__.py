"""The project's own models: how they are built, and the files themselves."""
