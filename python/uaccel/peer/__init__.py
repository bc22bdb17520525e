"""Measures a model's layers with CMSIS-NN, Arm's library of kernels, in the same firmware on the same board.

The library is in nobody's archive: a user clones it and names the folder. It is described as an accelerator whose
driver computes by itself, so that compiler, project, session and counting are those of any other run.
"""

from typing import Final

VARIABLE: Final = "UACCEL_CMSIS_NN"  # Names the checkout for the description, which a compilation loads by its folder.
