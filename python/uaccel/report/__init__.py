"""A run as a page to look at: one HTML file, made of what ``uaccel run --json`` tells (``docs/report.md``)."""

from uaccel.report.page import page, page_of, page_of_files
from uaccel.report.quantised import require_quantised, with_quantised
from uaccel.report.run import Run, read_run

__all__ = ["Run", "page", "page_of", "page_of_files", "read_run", "require_quantised", "with_quantised"]
