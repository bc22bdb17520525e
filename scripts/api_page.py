"""docs/reference/api.md from docstrings: what is public, by module. ``python scripts/api_page.py`` writes it."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "api.md"
MODULES = ("uaccel", "uaccel.accelerator", "uaccel.streams", "uaccel.testing")
HEAD = """# The Python interface

*Which names may my program rely on?* These, and no others. The page is made of their docstrings by
`python scripts/api_page.py`.

```python
import uaccel

run = uaccel.verify("tests/models/gesture.tflite", board="host", accelerators=["matrix8"])
print(run.outputs["softmax_1"], run.verdict["compared"])
```
"""


def page() -> str:
    """The whole text."""
    parts = [HEAD]
    for name in MODULES:
        module = import_module(name)
        parts.append(f"\n## `{name}`\n\n{plain(inspect.getdoc(module) or '')}\n")
        parts += [entry(name, public, getattr(module, public)) for public in sorted(module.__all__, key=str.lower)]
    return "".join(parts)


def entry(module: str, name: str, value: Any) -> str:
    """One name: its signature where it is called, and what it says of itself."""
    title = f"`{name}`"
    if inspect.isfunction(value):
        title = f"`{name}{signature(value)}`"
    elif inspect.ismodule(value):
        title = f"module `{name}`"
    told = inspect.getdoc(value) if callable(value) or inspect.ismodule(value) else None
    text = plain(told) if told else f"A constant: `{value!r}`." if len(repr(value)) < 100 else "A constant."
    methods = [method(value, each) for each in vars(value)] if inspect.isclass(value) else []
    return f"\n### {title}\n\n{text}\n" + "".join(filter(None, methods))


def method(owner: Any, name: str) -> str:
    """A row for a public method with words of its own."""
    value = inspect.getattr_static(owner, name)
    value = value.__func__ if isinstance(value, classmethod | staticmethod) else value
    if name.startswith("_") or not inspect.isfunction(value) or not value.__doc__:
        return ""
    return f"\n- `{name}{signature(value)}`: {plain(inspect.getdoc(value) or '')}\n"


def signature(function: Any) -> str:
    """Names and defaults: types stand in the source, for those who check them."""
    parameters = [p.replace(annotation=p.empty) for p in inspect.signature(function).parameters.values()]
    shown = str(inspect.Signature([p for p in parameters if p.name not in ("self", "cls")]))
    return re.sub(r"<function .*?>|<factory>", "...", shown)


def plain(text: str) -> str:
    """A docstring as Markdown, one line a paragraph."""
    text = re.sub(r":\w+:`~?([^`]*)`", r"`\1`", text).replace("``", "`")
    blocks = [block for block in text.split("\n\n") if ">>>" not in block]
    return "\n\n".join(" ".join(block.split()) for block in blocks).replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
