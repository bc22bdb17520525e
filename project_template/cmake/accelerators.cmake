# What a model's accelerators need: their drivers, and the way from these to the devices (firmware/include/uaccel_hal.h).
file(GLOB_RECURSE DRIVERS CONFIGURE_DEPENDS accelerators/*/driver/*.c)
file(GLOB_RECURSE CXX_DRIVERS CONFIGURE_DEPENDS accelerators/*/driver/*.cc accelerators/*/driver/*.cpp
     accelerators/*/driver/*.cxx)
file(GLOB DRIVER_FOLDERS CONFIGURE_DEPENDS accelerators/*/driver)
target_sources(model PRIVATE ${DRIVERS} ${CXX_DRIVERS})
target_include_directories(model PUBLIC ${DRIVER_FOLDERS} firmware/include)
if(CXX_DRIVERS)
  # Without C++'s run-time library: C links.
  enable_language(CXX)
  target_compile_options(model PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O2 -fno-exceptions -fno-rtti -fno-threadsafe-statics>)
  set_target_properties(firmware PROPERTIES LINKER_LANGUAGE C)
endif()
# What instructions of the core mean, where the core has them not (firmware/include/uaccel_instruction.h).
file(GLOB_RECURSE UNITS CONFIGURE_DEPENDS accelerators/*/unit/*.c)
if(UNITS)
  target_sources(model PRIVATE ${UNITS})
  target_compile_definitions(firmware PRIVATE UACCEL_INSTRUCTIONS)
endif()
if(NOT BOARD_HAL)
  return()
endif()

set(HAL board/devices.c)
set(HAL_FOLDERS firmware/include)
foreach(NAME IN LISTS BOARD_HAL)
  file(GLOB SOURCES CONFIGURE_DEPENDS firmware/ports/${NAME}/*.c)
  list(APPEND HAL ${SOURCES})
  list(APPEND HAL_FOLDERS firmware/ports/${NAME})
endforeach()

if(BOARD_TOOLCHAIN STREQUAL "native")
  # The devices themselves, as models; apart from what a board would hold.
  file(GLOB_RECURSE DEVICES CONFIGURE_DEPENDS accelerators/*/device/*.c)
  file(GLOB_RECURSE DEVICES_CXX CONFIGURE_DEPENDS accelerators/*/device/*.cc accelerators/*/device/*.cpp
       accelerators/*/device/*.cxx)
  if(DEVICES_CXX)
    enable_language(CXX)
    set(CMAKE_CXX_STANDARD 17)
    set(CMAKE_CXX_FLAGS_RELEASE "-O2")
  endif()
  file(GLOB DEVICE_FOLDERS CONFIGURE_DEPENDS accelerators/*/device)
  add_library(devices STATIC ${HAL} ${DEVICES} ${DEVICES_CXX})
  if(DEVICES_CXX)
    target_link_libraries(devices PUBLIC stdc++) # the program may be linked as C
  endif()
  target_include_directories(devices PRIVATE ${HAL_FOLDERS} ${DEVICE_FOLDERS})
  target_compile_options(devices PRIVATE -Wall -Wextra $<$<COMPILE_LANGUAGE:C>:-Werror=implicit-function-declaration>)
  # What they take besides, in lines that say "flag", "include" or "library"; anything else is left out.
  file(GLOB BUILDS CONFIGURE_DEPENDS accelerators/*/device/build.txt)
  foreach(BUILD IN LISTS BUILDS)
    get_filename_component(FOLDER ${BUILD} DIRECTORY)
    file(STRINGS ${BUILD} LINES)
    foreach(LINE IN LISTS LINES)
      if(NOT LINE MATCHES "^flag -(f|W|m)[A-Za-z0-9-]*=" AND LINE MATCHES "^flag (-[A-Za-z0-9_=+-]+)$")
        target_compile_options(devices PRIVATE ${CMAKE_MATCH_1})
      elseif(LINE MATCHES "^include ([A-Za-z0-9_/-]+)$")
        target_include_directories(devices PRIVATE ${FOLDER}/${CMAKE_MATCH_1})
      elseif(LINE MATCHES "^library ([A-Za-z0-9_][A-Za-z0-9_+.-]*)$")
        target_link_libraries(devices PUBLIC ${CMAKE_MATCH_1})
      endif()
    endforeach()
  endforeach()
  if(SESSIONS)
    target_compile_definitions(devices PRIVATE UACCEL_ACCOUNTING)
    if(OBSERVE)
      target_compile_definitions(devices PRIVATE UACCEL_OBSERVE)
    endif()
  endif()
  # Devices from shared libraries: nothing asks for that by a strong reference.
  if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
    target_link_options(devices INTERFACE LINKER:-u,uaccel_rack_libraries)
  endif()
  target_link_libraries(devices PUBLIC ${CMAKE_DL_LIBS})
  target_link_libraries(model PUBLIC devices)
  # What devices reach (firmware/ports/hal_host/hal.c).
  target_compile_definitions(
    model
    PUBLIC "UACCEL_DEVICE_CONSTANT=__attribute__((section(\"uaccel_device_constants\")))"
           UACCEL_DEVICE_CONSTANT_SECTION=uaccel_device_constants
           "UACCEL_WORKSPACE=__attribute__((section(\"uaccel_arena\")))"
           "UACCEL_IO=__attribute__((section(\"uaccel_io\")))")
else()
  target_sources(model PRIVATE ${HAL})
  foreach(NAME IN LISTS BOARD_PORTS)
    list(APPEND HAL_FOLDERS firmware/ports/${NAME})
  endforeach()
  target_include_directories(model PRIVATE ${HAL_FOLDERS} board)
endif()
