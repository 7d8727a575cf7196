#include "site/density.h"

#include <gtest/gtest.h>

#include "world/catalog.h"
#include "world/names.h"

namespace assay {
namespace {

const Bottleneck& limit(const Density& d, Limit which) {
  for (const Bottleneck& b : d.limits) {
    if (b.limit == which) return b;
  }
  ADD_FAILURE() << "no such limit";
  return d.limits[0];
}

// 24 MW, 512 positions of 44 kW, and a floor of an old computer room.
Site contracted_24mw() {
  Site s = *find_entry<Site>(catalog(), "phoenix");
  s.halls = 1;
  s.hall.racks = 512;
  s.hall.area_m2 = 0;
  s.hall.reach_m = 0;
  s.cooling = *find_entry<Cooling>(catalog(), "superpod-air-chiller");
  return s;
}

// 72 accelerators on one copper spine are one rack; a torus of thousands is not.
TEST(Density, ATorusIsCabledThroughManyRacks) {
  const Site s = *find_entry<Site>(catalog(), "phoenix");
  const Density pod = density(s, *find_cluster(catalog(), "tpu-v5p-1024"));
  EXPECT_FALSE(pod.rack.fixed);
  EXPECT_GT(pod.rack.nodes, 0);
  EXPECT_TRUE(pod.fits());
}

TEST(Density, TwentyFourMegawattsAndTheFloorSaysNo) {
  Site s = contracted_24mw();
  const Cluster c = *find_cluster(catalog(), "h100-8192");
  s.hall.floor_kg_m2 = 1220;
  const Density slab = density(s, c);
  EXPECT_NE(slab.binding, Limit::kFloorLoad);
  EXPECT_TRUE(slab.fits());
  EXPECT_EQ(slab.rack.nodes, 4);
  s.hall.floor_kg_m2 = 340;  // an office floor
  const Density office = density(s, c);
  EXPECT_EQ(office.binding, Limit::kFloorLoad);
  EXPECT_FALSE(office.fits());
  EXPECT_LT(office.nodes, slab.nodes);
}

TEST(Density, FloorLoadAsIbmComputesIt) {
  EXPECT_NEAR(floor_load(Hall{}, 722), 587, 0.01 * 587);
  EXPECT_NEAR(floor_load(Hall{}, 1360), 1030, 0.01 * 1030);
  EXPECT_NEAR(floor_load(Hall{}, 591), 496, 0.01 * 496);
}

TEST(Density, AThirtyKilowattRack) {
  EXPECT_EQ(nodes_by_power(Watts(30e3), 1, Watts(10.2e3)), 2);
  EXPECT_EQ(nodes_by_power(Watts(30e3), 1, Watts(8.4e3)), 3);
  EXPECT_EQ(nodes_by_power(Watts(30e3), 0.8, Watts(10.2e3)), 2);
}

TEST(Density, ARackThatMustBeWholeIsAllOrNothing) {
  Site s = contracted_24mw();
  s.hall.floor_kg_m2 = 2440;
  s.climate = *find_entry<Climate>(catalog(), "frankfurt");
  s.cooling = *find_entry<Cooling>(catalog(), "liquid-dry");
  Cluster c;
  c.node = *find_node(catalog(), "gb200-nvl72-tray");
  c.accelerator = *find_accelerator(catalog(), c.node.accelerator);
  c.fabric.scaleup_domain = 72;
  c.nodes = 18 * 8;
  s.hall.rack_power = Watts(132e3);
  EXPECT_EQ(density(s, c).rack.nodes, 18);
  s.hall.rack_power = Watts(44e3);
  const Density d = density(s, c);
  EXPECT_EQ(d.rack.nodes, 0);
  EXPECT_EQ(d.binding, Limit::kRackPower);
  EXPECT_EQ(d.nodes, 0);
}

TEST(Density, MoreOfAnythingNeverHoldsLess) {
  const Cluster c = *find_cluster(catalog(), "h100-8192");
  Site s = contracted_24mw();
  s.hall.floor_kg_m2 = 500;
  s.hall.reach_m = 50;
  s.power.distribution = Watts(20e6);
  s.cooling.capacity = Watts(15e6);
  const int64_t before = density(s, c).nodes;
  const auto with = [&](auto&& change) {
    Site more = s;
    change(more);
    return density(more, c).nodes;
  };
  EXPECT_GE(with([](Site& x) { x.power.contracted *= 1.5; }), before);
  EXPECT_GE(with([](Site& x) { x.power.distribution *= 1.5; }), before);
  EXPECT_GE(with([](Site& x) { x.cooling.capacity *= 1.5; }), before);
  EXPECT_GE(with([](Site& x) { x.hall.floor_kg_m2 *= 1.5; }), before);
  EXPECT_GE(with([](Site& x) { x.hall.rack_power *= 1.5; }), before);
  EXPECT_GE(with([](Site& x) { x.hall.racks *= 2; }), before);
  EXPECT_GE(with([](Site& x) { x.hall.reach_m *= 2; }), before);
}

TEST(Density, WhatIsNotStatedDoesNotBind) {
  Site s;
  s.climate = *find_entry<Climate>(catalog(), "frankfurt");
  s.power.contracted = Watts(1e6);
  s.cooling = *find_entry<Cooling>(catalog(), "liquid-dry");
  const Density d = density(s, *find_cluster(catalog(), "h100-64"));
  EXPECT_EQ(d.binding, Limit::kContracted);
  EXPECT_FALSE(limit(d, Limit::kFloorLoad).stated);
  EXPECT_FALSE(limit(d, Limit::kSpace).stated);
}

}  // namespace
}  // namespace assay
