"""Tables of functions with Arm Helium."""

from __future__ import annotations

from dataclasses import replace

from uaccel.cpu_kernels.helium_call import REQUIRES
from uaccel.cpu_kernels.registry import offers
from uaccel.ops.base import Site
from uaccel.ops.kernel import Kernel
from uaccel.ops.lookup import Lookup, LookupAttrs


@offers(Lookup, REQUIRES, rank=100)
def lookup(site: Site[LookupAttrs]) -> Kernel:
    portable = Lookup().kernels(site)[0]
    own = replace(portable.calls[0], function="uaccel_lookup_helium", header="uaccel_lookup_helium.h")
    return replace(portable, family="arm_helium", calls=(own,), requires=REQUIRES)
