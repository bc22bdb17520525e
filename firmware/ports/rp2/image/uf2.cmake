# From IMAGE.bin to IMAGE.uf2 by the board's own assembler, so that no other program is needed.
file(SIZE ${IMAGE}.bin BYTES)
math(EXPR SECTORS "(${BYTES} + 4095) / 4096") # whole ones: the RP2040's ROM clears those that it writes
math(EXPR BYTES "${SECTORS} * 4096")
math(EXPR BLOCKS "${SECTORS} * 16")

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE STATUS)
  if(STATUS)
    message(FATAL_ERROR "${IMAGE}.uf2 was not made: ${ARGV0} ended with ${STATUS}")
  endif()
endfunction()

run(${OBJCOPY} -I binary -O binary --gap-fill 0 --pad-to ${BYTES} ${IMAGE}.bin ${IMAGE}.sectors)
run(${COMPILER} -c -DBLOCKS=${BLOCKS} -DFAMILY=${FAMILY} "-DSECTORS=\"${IMAGE}.sectors\""
    ${CMAKE_CURRENT_LIST_DIR}/uf2.S -o ${IMAGE}.uf2.o)
run(${OBJCOPY} -O binary -j .uf2 ${IMAGE}.uf2.o ${IMAGE}.uf2)
file(REMOVE ${IMAGE}.sectors ${IMAGE}.uf2.o)
