"""Firmware projects: a folder of plain C and CMake around one archive."""
