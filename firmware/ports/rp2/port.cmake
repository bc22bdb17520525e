# build/firmware.uf2, beside the ELF file: what the boot ROM takes as a USB drive.
if(BOARD_ARCH STREQUAL "armv6m")
  set(UF2_FAMILY 0xE48BFF56) # RP2040
else()
  set(UF2_FAMILY 0xE48BFF59) # RP2350, secure Arm program
endif()
add_custom_command(TARGET firmware POST_BUILD
                   COMMAND ${CMAKE_COMMAND} -DCOMPILER=${CMAKE_C_COMPILER} -DOBJCOPY=${BOARD_OBJCOPY} -DFAMILY=${UF2_FAMILY}
                           -DIMAGE=${CMAKE_CURRENT_BINARY_DIR}/firmware -P ${CMAKE_CURRENT_LIST_DIR}/image/uf2.cmake
                   VERBATIM)
