#!/usr/bin/env python3
"""Stands in for ESP-IDF's command: IDF_PATH names the folder of tools/cmake/project.cmake."""

import subprocess
import sys

STEPS = {
    "set-target": [],
    "build": [["cmake", "-S", ".", "-B", "build"], ["cmake", "--build", "build"], ["./build/application"]],
}

for step in STEPS[sys.argv[1]]:
    subprocess.run(step, check=True)
