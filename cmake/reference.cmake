# docs/reference/yaml.md comes from the schema; a test holds it to that.
add_executable(yaml_reference tools/yaml_reference.cc)
target_link_libraries(yaml_reference PRIVATE assay_world)
add_test(NAME yaml_reference
         COMMAND yaml_reference --check ${CMAKE_SOURCE_DIR}/docs/reference/yaml.md)

# The fits of the catalog's collectives; built here so that it cannot rot.
add_library(collective_rows STATIC tools/collective_rows.cc)
target_include_directories(collective_rows PUBLIC ${CMAKE_SOURCE_DIR})
target_link_libraries(collective_rows PUBLIC assay_perf)
target_link_libraries(perf_test PRIVATE collective_rows)
add_executable(fit_collectives tools/fit_collectives.cc)
target_link_libraries(fit_collectives PRIVATE collective_rows)
