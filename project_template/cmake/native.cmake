# The firmware as a process of this computer, which has memory enough for large packets.
find_package(Threads REQUIRED)
get_target_property(SOURCES firmware SOURCES)
if(APPLICATION)
  list(REMOVE_ITEM SOURCES ${PORT}) # it is there for the session server alone
else()
  list(FILTER SOURCES EXCLUDE REGEX uaccel_main) # the port has a main function of its own
endif()
set_property(TARGET firmware PROPERTY SOURCES ${SOURCES})
target_compile_definitions(firmware PRIVATE UACCEL_BODY_BYTES=4096 UACCEL_PORT_RECEIVE_BYTES=16384)
target_link_libraries(firmware PRIVATE Threads::Threads)
# Resolve every function at start: what the dynamic linker does at a first call would count as the model's stack.
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  target_link_options(firmware PRIVATE -Wl,-z,now -Wl,-Map=${CMAKE_CURRENT_BINARY_DIR}/firmware.map)
endif()
