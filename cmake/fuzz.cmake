# Each reader of foreign text has a fuzz target in test/fuzz. A replay of its corpus with a fixed
# list of mutations is a test of every build; with clang and -DASSAY_FUZZ=ON there is the real fuzzer:
#   ./yaml_fuzz -max_total_time=600 NEW-CORPUS test/fuzz/corpus/yaml
option(ASSAY_FUZZ "libFuzzer targets (clang only)" OFF)

function(assay_fuzz name mutations)
  add_executable(${name}_fuzz_replay test/fuzz/${name}_fuzz.cc test/fuzz/driver.cc)
  target_link_libraries(${name}_fuzz_replay PRIVATE ${ARGN})
  add_test(NAME ${name}_fuzz COMMAND ${name}_fuzz_replay
           ${CMAKE_SOURCE_DIR}/test/fuzz/corpus/${name} ${mutations})
  set_tests_properties(${name}_fuzz PROPERTIES TIMEOUT 120)
  if(ASSAY_FUZZ)
    add_executable(${name}_fuzz test/fuzz/${name}_fuzz.cc)
    target_link_libraries(${name}_fuzz PRIVATE ${ARGN} -fsanitize=fuzzer)
  endif()
endfunction()

if(ASSAY_FUZZ)
  foreach(module base config world ingest)
    target_compile_options(assay_${module} PRIVATE -fsanitize=fuzzer-no-link)
  endforeach()
endif()
assay_fuzz(yaml 50000 assay_world assay_config)
assay_fuzz(csv 100000 assay_base)
assay_fuzz(hf_config 300000 assay_world)
assay_fuzz(runs 3000 assay_validate)
assay_fuzz(recognise 100000 assay_ingest)
assay_fuzz(straggler_csv 20000 assay_diagnose)
assay_fuzz(pickle 50000 assay_ingest)
assay_fuzz(flight_recorder 50000 assay_ingest)
assay_fuzz(text_readers 100000 assay_diagnose)
assay_fuzz(kineto 30000 assay_ingest)
assay_fuzz(slurm 20000 assay_ingest)
assay_fuzz(ranks 20000 assay_diagnose)
