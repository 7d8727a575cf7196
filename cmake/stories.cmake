# examples/stories: `build/stories` tells them, stories_test holds them to their causes.
add_library(assay_stories STATIC examples/stories/story.cc examples/stories/runs.cc
            examples/stories/cluster_stories.cc examples/stories/site_stories.cc)
target_link_libraries(assay_stories PUBLIC assay_plan assay_sim assay_site assay_economics)
add_executable(stories examples/stories/main.cc)
target_link_libraries(stories PRIVATE assay_stories)
add_executable(stories_test test/stories_test.cc)
target_link_libraries(stories_test PRIVATE assay_stories GTest::gtest GTest::gtest_main)
target_compile_definitions(stories_test PRIVATE ASSAY_ROOT="${CMAKE_SOURCE_DIR}")
add_test(NAME stories COMMAND stories_test)

# examples/runs: published runs, each held to the band that it states.
add_executable(published_runs_test test/published_runs_test.cc)
target_link_libraries(published_runs_test PRIVATE assay_stories GTest::gtest GTest::gtest_main)
target_compile_definitions(published_runs_test PRIVATE ASSAY_ROOT="${CMAKE_SOURCE_DIR}")
add_test(NAME published_runs COMMAND published_runs_test)
