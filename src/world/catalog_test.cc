#include "world/catalog.h"

#include <gtest/gtest.h>

#include "world/names.h"

namespace assay {
namespace {

TEST(Catalog, TheBuiltInOneLoadsWithoutProblems) {
  const tl::expected<Catalog, Diagnostics> loaded = load_catalog(ASSAY_ROOT "/catalog");
  ASSERT_TRUE(loaded) << render(loaded.error());
  EXPECT_EQ(catalog().accelerators.size(), loaded->accelerators.size());
}

}  // namespace
}  // namespace assay
