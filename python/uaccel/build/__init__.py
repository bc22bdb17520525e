"""Makes firmware of an archive: projects, tools, linker scripts, and what the linked firmware takes."""
