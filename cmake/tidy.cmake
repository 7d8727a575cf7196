# House style as a test; docs/internals/style.md.
add_executable(tidy_test test/tidy_test.cc)
target_link_libraries(tidy_test PRIVATE fmt::fmt GTest::gtest GTest::gtest_main)
target_compile_definitions(tidy_test PRIVATE ASSAY_ROOT="${CMAKE_SOURCE_DIR}")
add_test(NAME tidy COMMAND tidy_test)
