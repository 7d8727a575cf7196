# Modules in the order of src/LAYERS.
assay_module(base LIBS fmt::fmt)
assay_module(config DEPS base PRIVATE yaml-cpp)
assay_module(world DEPS base config PRIVATE simdjson)
include(cmake/embed_catalog.cmake)
assay_module(ledger DEPS base)
assay_module(perf DEPS world ledger)
assay_module(validate DEPS base world ledger perf)
