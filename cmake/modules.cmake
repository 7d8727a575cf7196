# Modules in the order of src/LAYERS.
assay_module(base LIBS fmt::fmt)
assay_module(config DEPS base PRIVATE yaml-cpp)
assay_module(ledger DEPS base)
