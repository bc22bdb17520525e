# The firmware for a board without an operating system: start-up code from the port, memory from board/memory.ld.
enable_language(ASM)

set(SIZE_OPTIONS -ffunction-sections -fdata-sections -fno-common)
target_compile_options(model PRIVATE ${SIZE_OPTIONS})
target_compile_options(firmware PRIVATE ${SIZE_OPTIONS} -fno-asynchronous-unwind-tables)
target_include_directories(firmware PRIVATE board)
foreach(NAME IN LISTS BOARD_PORTS)
  target_include_directories(firmware PRIVATE firmware/ports/${NAME})
endforeach()

# What is no kernel is small; a product's own application is as its author says.
set_source_files_properties(${PORT} PROPERTIES COMPILE_OPTIONS -Os)
if(NOT APPLICATION)
  set_source_files_properties(${RUNTIME} ${DESCRIPTION} PROPERTIES COMPILE_OPTIONS -Os)
endif()

# Who calls whom with how large a frame, beside each object (.ci): what bounds the stack without running anything.
option(CALL_GRAPH "Have the compiler write the call graph with the functions' frames" ON)
if(CALL_GRAPH)
  include(CheckCCompilerFlag)
  check_c_compiler_flag(-fcallgraph-info=su HAS_CALL_GRAPH)
  if(HAS_CALL_GRAPH)
    target_compile_options(model PRIVATE $<$<COMPILE_LANGUAGE:C>:-fcallgraph-info=su>)
    target_compile_options(firmware PRIVATE $<$<COMPILE_LANGUAGE:C>:-fcallgraph-info=su>)
  endif()
endif()

# What board/memory.ld puts in a memory of its own.
target_compile_definitions(
  model
  PUBLIC "UACCEL_CONSTANT=__attribute__((section(\".rodata.uaccel_weights\")))"
         "UACCEL_CONSTANT_POOL_SECTION=\".rodata.uaccel_pool.\""
         "UACCEL_DEVICE_CONSTANT=__attribute__((section(\".rodata.uaccel_device\")))"
         "UACCEL_WORKSPACE=__attribute__((section(\".bss.uaccel_arena\")))"
         "UACCEL_WORKSPACE_POOL_SECTION=\".bss.uaccel_pool.\""
         "UACCEL_IO=__attribute__((section(\".bss.uaccel_io\")))")

set(MEMORY ${CMAKE_CURRENT_SOURCE_DIR}/board/memory.ld)
set_target_properties(firmware PROPERTIES SUFFIX .elf LINK_DEPENDS ${MEMORY})
target_link_options(firmware PRIVATE ${BOARD_LINK_FLAGS} -nostartfiles -T${MEMORY} -Wl,--gc-sections
                    -Wl,-Map=${CMAKE_CURRENT_BINARY_DIR}/firmware.map)

if(BOARD_OBJCOPY)
  add_custom_command(TARGET firmware POST_BUILD
                     COMMAND ${BOARD_OBJCOPY} -O binary $<TARGET_FILE:firmware> firmware.bin)
endif()

# What else a port makes of the firmware.
foreach(NAME IN LISTS BOARD_PORTS)
  include(firmware/ports/${NAME}/port.cmake OPTIONAL)
endforeach()
