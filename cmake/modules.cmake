# Modules in the order of src/LAYERS.
assay_module(base LIBS fmt::fmt)
assay_module(config DEPS base PRIVATE yaml)
assay_module(world DEPS base config)
include(cmake/embed_catalog.cmake)
assay_module(ledger DEPS base)
assay_module(perf DEPS world ledger)
assay_module(plan DEPS perf)
assay_module(validate DEPS base world ledger perf)
assay_module(ingest DEPS base PRIVATE simdjson ZLIB::ZLIB pugixml::pugixml)
assay_module(diagnose DEPS ingest plan)
assay_module(site DEPS world)
assay_module(economics DEPS site)
assay_module(sim DEPS world ledger perf site LIBS Threads::Threads)
assay_module(report DEPS plan validate diagnose sim economics)
assay_module(cli DEPS report)
foreach(command catalog check compare diagnose explain plan review scale simulate validate)
  # All are called `run`.
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/cli/${command}.cc PROPERTIES
                              SKIP_UNITY_BUILD_INCLUSION ON)
endforeach()
target_compile_definitions(assay_cli PRIVATE ASSAY_VERSION="${PROJECT_VERSION}")

add_executable(assay ${CMAKE_SOURCE_DIR}/src/cli/main.cc)
target_link_libraries(assay PRIVATE assay_cli)

# The program as people run it.
foreach(name golden docs)
  assay_test(${name} assay_base test/${name}_test.cc)
  target_compile_definitions(${name}_test PRIVATE ASSAY_BINARY="$<TARGET_FILE:assay>")
  add_dependencies(${name}_test assay)
endforeach()

include(cmake/stories.cmake)
include(cmake/fuzz.cmake)

add_executable(calibrate tools/calibrate.cc)
target_link_libraries(calibrate PRIVATE assay_validate)

include(cmake/bench.cmake)
include(cmake/reference.cmake)
include(cmake/tidy.cmake)

# Last: it looks at every target and test above.
include(cmake/sanitized.cmake)
