# test/bench: run `build/bench` by hand for figures. The test only sees that the suite still works, on
# everything that takes milliseconds.
add_executable(bench test/bench/bench.cc)
target_link_libraries(bench PRIVATE assay_validate assay_plan benchmark::benchmark)
target_compile_definitions(bench PRIVATE ASSAY_ROOT="${CMAKE_SOURCE_DIR}")
add_test(NAME bench COMMAND bench --benchmark_min_time=0.001 --benchmark_filter=-search|validate)
