# What is worth running again under the sanitizers: every unit test and every fuzz replay, not the
# tests that only read text, or run the commands of the pages once more. `sanitized` builds their
# programs; `ctest -L sanitized` runs them.
get_property(targets DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
get_property(tests DIRECTORY PROPERTY TESTS)
add_custom_target(sanitized)
foreach(target IN LISTS targets)
  if(target MATCHES "_test$|_fuzz_replay$" AND NOT target MATCHES "^(tidy|docs)_test$")
    add_dependencies(sanitized ${target})
    string(REGEX REPLACE "_test$|_replay$" "" test ${target})
    if(test IN_LIST tests)
      set_property(TEST ${test} APPEND PROPERTY LABELS sanitized)
    endif()
  endif()
endforeach()
