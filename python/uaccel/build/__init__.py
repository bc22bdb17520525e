"""From an archive to firmware: projects, programs outside, linking."""
