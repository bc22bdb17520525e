"""Pictures of what the compiler does are drawn of what it does today."""

from __future__ import annotations

from support.run.scripts import script_of


def test_pictures_show_what_the_compiler_does() -> None:
    script = script_of("scripts/compiler_pictures.py")
    for name, made in script.PICTURES.items():
        kept = (script.DOCS / name).read_text(encoding="utf-8")
        assert kept == made(), "draw it anew: python scripts/compiler_pictures.py"
