"""Which words the scores of a sequence of frames tell: a word is at least two frames in a row of one kind."""

import sys
from itertools import groupby

import numpy as np

if __name__ == "__main__":
    (scores,) = np.load(sys.argv[1]).values()
    runs = [(kind, len(list(run))) for kind, run in groupby(scores.reshape(-1, 3).argmax(axis=1))]
    print(*(("", "rising", "falling")[kind] for kind, length in runs if kind and length >= 2))
