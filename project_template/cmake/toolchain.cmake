# The compiler of the board: <prefix>-gcc from PATH, or from the folder in the environment variable BOARD_TOOLCHAIN_PATH.
include(${CMAKE_CURRENT_LIST_DIR}/../board/board.cmake)

set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR ${BOARD_ARCH})
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)

if(NOT CMAKE_C_COMPILER)
  find_program(BOARD_C_COMPILER ${BOARD_TOOLCHAIN}-gcc HINTS ENV BOARD_TOOLCHAIN_PATH)
  if(NOT BOARD_C_COMPILER)
    message(FATAL_ERROR "board ${BOARD_NAME}: ${BOARD_TOOLCHAIN}-gcc is not in PATH; "
                        "install it (Debian, Ubuntu: apt-get install gcc-${BOARD_TOOLCHAIN})")
  endif()
  set(CMAKE_C_COMPILER ${BOARD_C_COMPILER})
endif()
find_program(CMAKE_CXX_COMPILER ${BOARD_TOOLCHAIN}-g++ HINTS ENV BOARD_TOOLCHAIN_PATH) # for drivers in C++
find_program(BOARD_OBJCOPY ${BOARD_TOOLCHAIN}-objcopy HINTS ENV BOARD_TOOLCHAIN_PATH)

string(REPLACE ";" " " CMAKE_C_FLAGS_INIT "${BOARD_FLAGS}")
set(CMAKE_ASM_FLAGS_INIT "${CMAKE_C_FLAGS_INIT}")
set(CMAKE_CXX_FLAGS_INIT "${CMAKE_C_FLAGS_INIT}")
