"""Makes pages of runs and sweeps: each is one HTML file, made of the JSON of ``uaccel run`` (``docs/report.md``)."""

from uaccel.report.page import page, page_of, page_of_files
from uaccel.report.stored_run import StoredRun, read_run, require_quantised, with_quantised
from uaccel.report.sweep_page import page_of_results

__all__ = [
    "StoredRun",
    "page",
    "page_of",
    "page_of_files",
    "page_of_results",
    "read_run",
    "require_quantised",
    "with_quantised",
]
