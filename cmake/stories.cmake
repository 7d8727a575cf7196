# examples/stories: `build/stories` tells them, stories_test holds them to their causes.
add_library(assay_stories STATIC examples/stories/story.cc examples/stories/runs.cc
            examples/stories/cluster_stories.cc examples/stories/site_stories.cc)
target_link_libraries(assay_stories PUBLIC assay_plan assay_sim assay_site assay_economics)
assay_precompile(assay_stories assay_base)
add_executable(stories examples/stories/main.cc)
target_link_libraries(stories PRIVATE assay_stories)
assay_test(stories assay_stories test/stories_test.cc)

# examples/runs: published runs, each held to the band that it states.
assay_test(published_runs assay_stories test/published_runs_test.cc)
