"""The linker script of a project, from the memories of its board."""

from __future__ import annotations

from uaccel.board import Board, Memory
from uaccel.project.layout import GUARD, INTERRUPT_STACK, Layout, Needs, regions


def linker_script(board: Board, needs: Needs, layout: Layout) -> str:
    """For GNU ld; what its symbols mean is told in docs/boards.md."""
    places = "\n".join(f" *   {what}: {memory.name}" for what, memory in regions(layout))
    memories = "\n".join(_region(memory) for memory in board.memories)
    return _SCRIPT.format(
        board=board.name,
        file=board.file.name,
        model=needs.model,
        places=places,
        memories=memories,
        code=layout.code.name,
        weights=layout.weights.name,
        data=layout.data.name,
        working=_working(layout),
        device_constants=_device_constants(layout),
        constants=_constants(layout),
        copies=_copies(layout),
        guard=GUARD,
        stack=board.stack,
        interrupt_stack=INTERRUPT_STACK,
    )


def _region(memory: Memory) -> str:
    access = "rx" if memory.kind == "flash" else "rwx"
    return f"  {memory.name} ({access}) : ORIGIN = {memory.origin:#010x}, LENGTH = {memory.length:#x}"


def _working(layout: Layout) -> str:
    """Arena, inputs and outputs."""
    if layout.shared is not None and layout.device_constants is not None:
        return _REACHED.format(shared=layout.shared.name)
    shared = "" if layout.shared is None else _SHARED.format(shared=layout.shared.name)
    pools = "".join(_POOL.format(name=name, memory=memory.name) for name, memory in layout.pools)
    return _PLAIN.format(arena=layout.arena.name, io=layout.io.name, pools=pools) + shared


def _constants(layout: Layout) -> str:
    """Of constants that are divided."""
    loads = {part.pool: "" if part.load is None else f" AT> {part.load.name}" for part in layout.constants}
    return "".join(
        _CONSTANTS.format(name=part.pool, memory=part.memory.name, load=loads[part.pool]) for part in layout.constants
    )


def _copies(layout: Layout) -> str:
    """From where to where, of the parts that start-up copies."""
    return "".join(_COPY.format(name=part.pool) for part in layout.constants if part.load is not None)


def _device_constants(layout: Layout) -> str:
    if layout.device_constants is None:
        return _NO_DEVICE_CONSTANTS
    load = "" if layout.device_load is None else f" AT> {layout.device_load.name}"
    return _DEVICE_CONSTANTS.format(memory=layout.device_constants.name, load=load)


_CONSTANTS = """  .uaccel_constants_{name} :
  {{
    . = ALIGN(16);
    *(.rodata.uaccel_pool.{name})
    . = ALIGN(8);
  }} > {memory}{load}
"""
_COPY = """    LONG(ADDR(.uaccel_constants_{name}))
    LONG(ADDR(.uaccel_constants_{name}) + SIZEOF(.uaccel_constants_{name}))
    LONG(LOADADDR(.uaccel_constants_{name}))
"""

# What the start-up code looks for, whether there are accelerators or not.
_NO_DEVICE_CONSTANTS = """  uaccel_device_constants_start = 0;
  uaccel_device_constants_end = 0;
  uaccel_device_constants_load = 0;
"""

_DEVICE_CONSTANTS = """  /* Read by accelerators; copied by the start-up code where they do not lie there at once. */
  .uaccel_device_constants :
  {{
    . = ALIGN(64);
    uaccel_device_constants_start = .;
    *(.rodata.uaccel_device)
    . = ALIGN(64);
    uaccel_device_constants_end = .;
  }} > {memory}{load}
  uaccel_device_constants_load = LOADADDR(.uaccel_device_constants);
"""

_PLAIN = """  /* Left as they are at start-up: their contents do not matter then. */
  .uaccel_arena (NOLOAD) : {{ . = ALIGN(16); *(.bss.uaccel_arena) }} > {arena}
{pools}  .uaccel_io (NOLOAD) : {{ . = ALIGN(16); *(.bss.uaccel_io) }} > {io}

"""
_POOL = "  .uaccel_pool_{name} (NOLOAD) : {{ . = ALIGN(16); *(.bss.uaccel_pool.{name}) }} > {memory}\n"

_REACHED = """  /* Read and written by accelerators, between the two symbols; left as they are at start-up. */
  .uaccel_shared (NOLOAD) :
  {{
    . = ALIGN(64);
    uaccel_shared_start = .;
    *(.bss.uaccel_arena .bss.uaccel_pool.*)
    . = ALIGN(64);
    *(.bss.uaccel_io)
    . = ALIGN(64);
    *(.bss.uaccel_shared)
    . = ALIGN(64);
    uaccel_shared_end = .;
    *(.bss.uaccel_window)
  }} > {shared}

"""

_SHARED = """  /* What an accelerator reads and writes by itself. */
  .uaccel_shared (NOLOAD) :
  {{
    . = ALIGN(4096);
    uaccel_shared_start = .;
    KEEP(*(.bss.uaccel_window))
    *(.bss.uaccel_shared)
    uaccel_shared_end = .;
  }} > {shared}

"""

_SCRIPT = """\
/* Board {board}, model {model}: made from {file}; make a new project instead of editing it.
{places} */
ENTRY(uaccel_reset)

MEMORY
{{
{memories}
}}

SECTIONS
{{
  /* Around the vectors, what boot ROMs want to find. */
  .uaccel_vectors : {{ KEEP(*(.uaccel_boot)) KEEP(*(.uaccel_vectors)) KEEP(*(.uaccel_image)) }} > {code}

  .uaccel_weights : {{ . = ALIGN(16); *(.rodata.uaccel_weights) . = ALIGN(8); }} > {weights}
{constants}
{device_constants}
  .text :
  {{
    /* What start-up copies: from where it is read to its end, and where it lies in flash. */
    . = ALIGN(4);
    uaccel_copies_start = .;
{copies}    uaccel_copies_end = .;
    uaccel_uncounted_start = .;
    *(.text.uaccel_uncounted)
    uaccel_uncounted_end = .;
    *(.text .text.*)
    . = ALIGN(8);
    *(.rodata .rodata.* .srodata .srodata.*)
    . = ALIGN(8);
  }} > {code}

  /* The stack is at the bottom, with a guard below it: what runs over it is a fault, and not another variable. */
  .uaccel_stacks (NOLOAD) :
  {{
    . = ALIGN({guard});
    uaccel_stack_guard = .;
    . += {guard};
    uaccel_stack_bottom = .;
    . += {stack};
    uaccel_stack_top = .;
    uaccel_interrupt_stack_bottom = .;
    . += {interrupt_stack};
    uaccel_interrupt_stack_top = .;
  }} > {data}

{working}  .data :
  {{
    . = ALIGN(8);
    uaccel_data_start = .;
    *(.data .data.*)
    PROVIDE(__global_pointer$ = . + 0x800);
    *(.sdata .sdata.*)
    . = ALIGN(8);
  }} > {data} AT> {code}
  uaccel_data_load = LOADADDR(.data);

  /* Thread-local variables, of the one thread that there is: the errno of some C libraries. */
  .tdata :
  {{
    uaccel_tls_start = .;
    *(.tdata .tdata.*)
    . = ALIGN(8);
    uaccel_data_end = .;
  }} > {data} AT> {code}
  .tbss (NOLOAD) : {{ *(.tbss .tbss.*) . = ALIGN(8); }} > {data}
  .uaccel_tls (NOLOAD) : {{ uaccel_bss_start = .; . += SIZEOF(.tbss); }} > {data} /* .tbss itself takes no room */

  .bss (NOLOAD) :
  {{
    . = ALIGN(8);
    *(.bss .bss.* .sbss .sbss.* COMMON)
    . = ALIGN(8);
    uaccel_bss_end = .;
  }} > {data}

  /DISCARD/ : {{ *(.ARM.exidx* .ARM.extab* .eh_frame* .init_array* .fini_array* .preinit_array*) }}
}}
"""
