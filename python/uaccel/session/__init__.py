"""Talks to running firmware: over serial ports, processes, emulators, simulated cores and debug probes."""
