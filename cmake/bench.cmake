# test/bench: run `build/bench` by hand for figures. The test sees that the suite still works, on
# everything that takes milliseconds, and that a prediction costs no more than so many rounds of plain
# arithmetic on the same machine.
add_executable(bench test/bench/bench.cc)
target_link_libraries(bench PRIVATE assay_validate assay_plan benchmark::benchmark)
target_compile_definitions(bench PRIVATE ASSAY_ROOT="${CMAKE_SOURCE_DIR}")
add_test(NAME bench COMMAND bench --benchmark_min_time=0.001 --benchmark_filter=-search|validate)
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT ASSAY_SANITIZE)
  add_test(NAME bench_check COMMAND bench --check)
endif()

# Reading a trace against the least that any reader pays, in CPU time; fails above twice that.
add_library(trace_generator STATIC tools/trace_generator.cc)
target_include_directories(trace_generator PUBLIC ${CMAKE_SOURCE_DIR})
target_link_libraries(trace_generator PUBLIC assay_base)
add_executable(make_trace tools/make_trace.cc)
target_link_libraries(make_trace PRIVATE trace_generator ZLIB::ZLIB)
add_executable(ingest_bench test/bench/ingest_bench.cc)
target_link_libraries(ingest_bench PRIVATE assay_ingest trace_generator simdjson ZLIB::ZLIB)
if(NOT ASSAY_SANITIZE)
  add_test(NAME ingest_bench COMMAND ingest_bench --most 2 10)
endif()

# A thousand ranks in the memory of a few: each is reduced to a summary before the next is read.
add_executable(ranks_bench test/bench/ranks_bench.cc)
target_link_libraries(ranks_bench PRIVATE assay_diagnose trace_generator ZLIB::ZLIB)
if(NOT ASSAY_SANITIZE)
  add_test(NAME ranks_bench COMMAND ranks_bench --most 64)
endif()

# Runs over weeks against their bars. SimGrid (Debian's libsimgrid-dev) is compared where it is
# installed; nothing else knows of it.
add_executable(sim_bench test/bench/sim_bench.cc test/bench/flow_scenario.cc)
target_link_libraries(sim_bench PRIVATE assay_sim)
# Bars are of an optimised build; elsewhere only that it works is seen.
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT ASSAY_SANITIZE)
  add_test(NAME sim_bench COMMAND sim_bench --check)
else()
  add_test(NAME sim_bench COMMAND sim_bench --quick)
endif()
find_library(SIMGRID_LIBRARY simgrid)
find_path(SIMGRID_INCLUDE simgrid/s4u.hpp)
if(SIMGRID_LIBRARY AND SIMGRID_INCLUDE AND NOT ASSAY_SANITIZE)
  target_sources(sim_bench PRIVATE test/bench/simgrid_scenario.cc)
  target_compile_definitions(sim_bench PRIVATE ASSAY_SIMGRID)
  target_link_libraries(sim_bench PRIVATE ${SIMGRID_LIBRARY})
endif()
