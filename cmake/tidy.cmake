# House style as a test; docs/internals/style.md.
assay_test(tidy assay_base test/tidy_test.cc)
