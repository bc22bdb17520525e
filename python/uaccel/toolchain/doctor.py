"""Everything that uaccel needs, looked at in one go."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

from uaccel.toolchain.check import Check
from uaccel.toolchain.programs import PROGRAMS, check_program
from uaccel.toolchain.python_packages import PYTHON_PACKAGES, check_package, check_python, check_uaccel


def examine(*, everything: bool = False) -> list[Check]:
    """One check for each thing, in a fixed order; ``everything``: contributors' tools, too, and imports tried.

    Two run at once, for it is other processes that work.
    """
    packages = [package for package in PYTHON_PACKAGES if everything or package.audience != "contributors"]
    programs = [program for program in PROGRAMS if everything or program.brought_by != "test-full"]
    looks = [
        check_python,
        check_uaccel,
        *(partial(check_package, package, thorough=everything) for package in packages),
        *(partial(check_program, program) for program in programs),
    ]
    with ThreadPoolExecutor(max_workers=2) as pool:
        return list(pool.map(lambda look: look(), looks))
