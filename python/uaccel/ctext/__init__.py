"""C as text: types, literals, arrays, and lines that fit, for all of uaccel that writes C."""
