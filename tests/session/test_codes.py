"""The drivers' codes: what the host says of each is what the header says."""

from __future__ import annotations

import re

from uaccel.session.message import CODES
from uaccel.util.files import data_dir


def test_the_words_are_the_headers() -> None:
    text = (data_dir("firmware") / "include" / "uaccel_accelerator.h").read_text()
    codes = re.findall(r"^    UACCEL_ACCELERATOR_\w+ = ([1-9]\d*),\s+/\* (.+) \*/$", text, re.MULTILINE)
    assert {int(code): words for code, words in codes} == CODES
