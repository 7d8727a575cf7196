# test/bench: run `build/bench` by hand for figures. The test only sees that the suite still works, on
# everything that takes milliseconds.
add_executable(bench test/bench/bench.cc)
target_link_libraries(bench PRIVATE assay_validate assay_plan benchmark::benchmark)
target_compile_definitions(bench PRIVATE ASSAY_ROOT="${CMAKE_SOURCE_DIR}")
add_test(NAME bench COMMAND bench --benchmark_min_time=0.001 --benchmark_filter=-search|validate)

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
