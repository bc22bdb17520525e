"""A run, or a sweep of them, as a page to look at: one HTML file, made of what ``uaccel run --json`` tells
(``docs/report.md``)."""

from uaccel.report.page import page, page_of, page_of_files
from uaccel.report.stored_run import Run, read_run, require_quantised, with_quantised
from uaccel.report.sweep_page import page_of_results

__all__ = [
    "Run",
    "page",
    "page_of",
    "page_of_files",
    "page_of_results",
    "read_run",
    "require_quantised",
    "with_quantised",
]
