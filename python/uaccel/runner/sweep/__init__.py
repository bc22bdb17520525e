"""Many runs: which there are (a matrix), who does them (processes, or workers elsewhere), and what is kept of them."""
