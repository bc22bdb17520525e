"""What computes the wanted bytes without uaccel: other runtimes, exact sums, known values."""
