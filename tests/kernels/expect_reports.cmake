# Runs PROGRAM on right kernels, which must pass in silence, and then on each of FAULTS (with commas between them),
# where it must fail with a REPORT that names a line of the kernels.
string(REPLACE "," ";" FAULTS "${FAULTS}")
set(prefix)

macro(run_program fault)
  execute_process(COMMAND ${prefix} ${PROGRAM} ${fault} RESULT_VARIABLE status OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
endmacro()

run_program(none)
if(output MATCHES "unexpected memory mapping")
  # Some kernels place memory at random where ThreadSanitizer wants to have its own.
  set(prefix setarch -R)
  run_program(none)
endif()
if(NOT status EQUAL 0 OR output MATCHES "Sanitizer")
  message(FATAL_ERROR "The right kernels fail with status ${status}:\n${output}")
endif()

foreach(fault IN LISTS FAULTS)
  run_program(${fault})
  if(status EQUAL 0)
    message(FATAL_ERROR "The fault ${fault} goes unnoticed.")
  endif()
  if(NOT output MATCHES "${REPORT}.*sample_kernels\\.cu:[0-9]+")
    message(FATAL_ERROR "The fault ${fault} ends with status ${status} and without the expected report:\n${output}")
  endif()
endforeach()
