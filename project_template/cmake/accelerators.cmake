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
  file(GLOB DEVICE_FOLDERS CONFIGURE_DEPENDS accelerators/*/device)
  add_library(devices STATIC ${HAL} ${DEVICES})
  target_include_directories(devices PRIVATE ${HAL_FOLDERS} ${DEVICE_FOLDERS})
  target_compile_options(devices PRIVATE -Wall -Wextra -Werror=implicit-function-declaration)
  if(NOT APPLICATION)
    target_compile_definitions(devices PRIVATE UACCEL_ACCOUNTING)
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
           "UACCEL_WORKSPACE=__attribute__((section(\"uaccel_arena\")))"
           "UACCEL_IO=__attribute__((section(\"uaccel_io\")))")
else()
  target_sources(model PRIVATE ${HAL})
  foreach(NAME IN LISTS BOARD_PORTS)
    list(APPEND HAL_FOLDERS firmware/ports/${NAME})
  endforeach()
  target_include_directories(model PRIVATE ${HAL_FOLDERS} board)
endif()
