// Stories of the building and of the input: pump, hot afternoon, power bill, input API.
#include <algorithm>

#include <fmt/format.h>

#include "economics/cost.h"
#include "runs.h"
#include "sim/input_api.h"
#include "site/heat.h"
#include "story.h"
#include "world/names.h"

namespace assay {
namespace {

constexpr int64_t kRequests = 200'000, kRoughly = 30'000;  // of the input API

}  // namespace

Story pump_story(const std::string&) {
  Story s;
  s.name = "pump";
  s.claim = "Predicting the load cut the throttle events of a pump that lags 90 s by 70 %.";
  constexpr int kRuns = 6;
  const auto day = [](HeatSetup h, ThermalControl policy) {
    h.control.policy = policy;
    return simulate_heat_runs(h, 1, kRuns, 1);
  };
  const HeatSetup plant;
  const HeatResult reactive = day(plant, ThermalControl::kReactive);
  const HeatResult forecast = day(plant, ThermalControl::kForecast);
  HeatSetup fast = plant;
  fast.loop.pump_tau = Seconds(3);
  fast.loop.pump_delay = Seconds(0);
  HeatSetup cold = plant;
  cold.loop.supply_c = 30;
  const HeatResult no_lag = day(fast, ThermalControl::kReactive);
  const HeatResult no_heat = day(cold, ThermalControl::kReactive);
  const auto fewer = [&](const HeatSetup& h) {
    const HeatResult r = day(h, ThermalControl::kReactive);
    return r.events > 0 && 1 - day(h, ThermalControl::kForecast).events / r.events > 0.5;
  };
  const auto reduction = [&](double supply) {
    HeatSetup h = plant;
    h.loop.supply_c = supply;
    const HeatResult r = day(h, ThermalControl::kReactive), f = day(h, ThermalControl::kForecast);
    return r.events > 0 ? 1 - f.events / r.events : 0.0;
  };
  s.inputs = {
      {"H200 on a cold plate", "resistances of docs/models/heat.md", 'm', ""},
      {"coolant", "42 C", 'a',
       survives(42, {30, 36, 39, 42, 44, 48}, [&](double c) { return reduction(c) > 0.5; }) + " C"},
      {"forecast sees", "70 % of load steps", 'a',
       survives(0.7, {0.3, 0.5, 0.6, 0.7, 0.8, 1},
                [&](double recall) {
                  HeatSetup h = plant;
                  h.control.recall = recall;
                  return 1 - day(h, ThermalControl::kForecast).events / reactive.events > 0.5;
                }) +
           " of them"},
      {"forecast looks", "120 s ahead", 'a',
       survives(120, {30, 60, 90, 120, 240},
                [&](double lead) {
                  HeatSetup h = plant;
                  h.control.lead = Seconds(lead);
                  return 1 - day(h, ThermalControl::kForecast).events / reactive.events > 0.5;
                }) +
           " s"},
      {"cold plate", "400 J/K", 'a',
       survives(400, {100, 200, 400, 800, 1600},
                [&](double j_per_k) {
                  HeatSetup h = plant;
                  h.gpu.plate_j_per_k = j_per_k;
                  return fewer(h);
                }) +
           " J/K"},
      {"load", "busy for 20 min, low for 7", 'a',
       survives(20, {5, 10, 20, 40},
                [&](double minutes) {
                  HeatSetup h = plant;
                  h.load.busy_median = Seconds(60 * minutes);
                  h.load.low_median =
                      h.load.busy_median * (plant.load.low_median / plant.load.busy_median);
                  return fewer(h);
                }) +
           " min busy"},
      {"pump at rest", "35 % of its flow", 'a', survives(0.35, {0.2, 0.35, 0.5}, [&](double flow) {
                                                  HeatSetup h = plant;
                                                  h.loop.flow_min = flow;
                                                  return fewer(h);
                                                }) + " of it"}};
  const double per_day = 1 / reactive.days;
  s.figures = {
      {"reactive", fmt::format("{:.1f} events and {:.0f} s lost a day", reactive.events * per_day,
                               reactive.lost_slowest.v * per_day)},
      {"with forecast", fmt::format("{:.1f} events and {:.0f} s lost a day",
                                    forecast.events * per_day, forecast.lost_slowest.v * per_day)},
      {"what that is worth",
       fmt::format("{:.2f} % of GPU time",
                   100 * (reactive.lost_slowest - forecast.lost_slowest).v * per_day / 86400)},
      {"a pump that follows within seconds",
       fmt::format("{:.1f} events a day", no_lag.events / no_lag.days)},
      {"coolant of 30 C", fmt::format("{:.1f} events a day", no_heat.events / no_heat.days)}};
  s.cause = "Flow rises a minute after the load, on a loop too warm to wait.";
  s.fix = "Tell the pump before the load steps, keep it running, or cool the loop.";
  s.symptom = reactive.events * per_day > 20;
  s.without_cause = no_lag.events / no_lag.days > 20;
  const double removed = 1 - forecast.events / reactive.events;
  const double worth = (reactive.lost_slowest - forecast.lost_slowest).v * per_day / kSecondsPerDay;
  s.verdict = fmt::format(
      "Holds: {:.0f} % fewer events, the share of load steps that the forecast sees; worth {:.1f} "
      "% "
      "of GPU time. Report time, not events.",
      100 * removed, 100 * worth);
  return s;
}

Story phoenix_story(const std::string& folder) {
  Story s;
  s.name = "phoenix";
  s.claim = "Hot afternoons in Phoenix slow a cluster down; train at night.";
  const auto july = [&](const Change& change) {
    Description d = story_description(folder + "/phoenix-july.yaml");
    if (change) change(d);
    FacilityOptions o;
    o.start_hour = 24 * 181;
    o.hours = 24 * 31;
    return facility_series(d.site, d.setting.cluster, o);
  };
  const auto clock_at = [](const SiteSeries& series, int hour) {
    double sum = 0;
    for (size_t i = static_cast<size_t>(hour); i < series.hours.size(); i += 24)
      sum += series.hours[i].thermal_clock;
    return sum / (static_cast<double>(series.hours.size()) / 24);
  };
  const SiteSeries dry = july(nullptr);
  const SiteSeries chilled = july([](Description& d) {
    for (const Cooling& c : catalog().cooling) {
      if (c.name == "liquid-chiller") d.site.cooling = c;
    }
  });
  const double day = clock_at(dry, 15), night = clock_at(dry, 5);
  const double gain = night / day - 1;
  const Description described = story_description(folder + "/phoenix-july.yaml");
  const double price = described.setting.cluster.price.v * kSecondsPerHour;
  const auto gpus = static_cast<double>(described.setting.cluster.accelerators());
  constexpr double kDays = 31, kNight = 12;
  const double won = gain / 2 * kNight * kDays * gpus * price;
  const double idled = (24 - kNight) * kDays * gpus * price;
  s.inputs = {{"climate", "Phoenix, July, from its typical year", 'm', ""},
              {"plant", "dry coolers, 6 K above the air", 'a',
               survives(6, {2, 4, 6, 8},
                        [&](double approach) {
                          const SiteSeries other = july(
                              [approach](Description& d) { d.site.cooling.approach_k = approach; });
                          return clock_at(other, 5) / clock_at(other, 15) - 1 > 0.002;
                        }) +
                   " K"},
              {"load steps", "9 a day, Llama 3's interruptions", 's', ""},
              {"clock against temperature", "-0.11 % a kelvin under the power cap", 'm', ""}};
  s.figures = {
      {"clock at 15 h against 5 h", fmt::format("{:.2f} % lower", 100 * (1 - day / night))},
      {"night shift of 12 h",
       fmt::format("{:+.2f} % an hour, ${:.0f} in July; the other hours idle ${:.0f} k",
                   100 * gain / 2, won, idled / 1000)},
      {"with a chiller",
       fmt::format("{:.2f} % lower", 100 * (1 - clock_at(chilled, 15) / clock_at(chilled, 5)))}};
  s.cause =
      "Leakage grows with temperature, so the power cap leaves a lower clock, and on a hot loop "
      "every "
      "load step throttles until the pump has followed.";
  s.fix = "Colder coolant on hot afternoons; not a night shift: it idles what is paid for.";
  s.symptom = gain > 0.002;
  s.without_cause = clock_at(chilled, 5) / clock_at(chilled, 15) - 1 > 0.002;
  s.verdict = fmt::format(
      "The slow afternoon holds, at {:.1f} % (Meta saw 1-2 %); the night shift does not pay: it "
      "idles "
      "{:.0f} times what it wins.",
      100 * (1 - day / night), idled / std::max(won, 1.0));
  s.commands = {"assay simulate examples/stories/phoenix-july.yaml --start 2026-07 --days 31"};
  return s;
}

Story bill_story(const std::string&) {
  Story s;
  s.name = "bill";
  s.claim = "100 nodes at 70 % and $0.12 a kWh cost $60,000 of energy a year.";
  constexpr EnergyPrice kPrice{0.12 / kJoulesPerKwh};
  constexpr double kNodes = 100, kUsed = 0.7;
  const Node& dgx_node = *find_entry<Node>(catalog(), "dgx-h100");
  const Watts implied = implied_node_power(Dollars(60000), kNodes, kUsed, 1, kPrice);
  const Dollars dgx = energy_per_year(kNodes, dgx_node.nameplate, Watts(0), kUsed, 1, kPrice);
  s.inputs = {{"use", "70 %, nothing drawn at rest, PUE 1", 'a', "any: a higher PUE implies less"},
              {"DGX H100", fmt::format("{:.1f} kW nameplate", dgx_node.nameplate.v / 1000), 's',
               survives(10200, {1000, 2000, 5000, 8000, 10200}, [&](double w) {
                 return energy_per_year(kNodes, Watts(w), Watts(0), kUsed, 1, kPrice).v > 66000;
               }) + " W"}};
  s.figures = {{"node that the bill implies", fmt::format("{:.0f} W at load", implied.v)},
               {"100 DGX H100", fmt::format("${:.0f} a year", dgx.v)}};
  s.cause = "The bill is that of a CPU or one-GPU node.";
  s.fix = "Ask what a node is: eight GPUs cost twelve times as much.";
  s.symptom = dgx.v > 10 * 60000;
  s.without_cause = energy_per_year(kNodes, implied, Watts(0), kUsed, 1, kPrice).v > 10 * 60000;
  s.verdict = fmt::format(
      "Does not hold for GPU nodes ({:.1f} times as much); it would if `node` meant `GPU`.",
      dgx.v / 60000);
  return s;
}

Story api_story(const std::string&) {
  Story s;
  s.name = "api";
  s.claim = "An input API of 800 MB/s turned 35 ms into 220 ms; cache and batcher made it 42 ms.";
  // Chosen before anything was computed: an API at 95 % of its bandwidth, a cache that has four of
  // five inputs, a batcher that waits 2 ms for eight.
  constexpr double kLoad = 0.95, kCached = 0.8;
  InputApi light;
  const auto loaded_to = [&](double share) {
    InputApi a = light;
    a.requests_per_s = share * a.api.v / a.input.v;
    return a;
  };
  const InputApi loaded = loaded_to(kLoad);
  const auto mended = [](InputApi a, double cached) {
    a.cached = cached;
    a.batch_most = 8;
    a.batch_wait = Seconds(2e-3);
    return a;
  };
  InputApi wide = loaded;
  wide.api = Bandwidth(1.6e9);
  InputApi batched = mended(loaded, 0);
  const auto ms = [](const InputApi& a, int64_t requests = kRequests) {
    return simulate_input_api(a, requests, 1).mean.v * 1e3;
  };
  const auto roughly = [&](const InputApi& a) { return ms(a, kRoughly); };
  const double calm = ms(light);
  const auto input_of = [&](double mb) {
    InputApi a = light;
    a.input = Bytes(mb * 1e6);
    const double alone = roughly(a);
    a.requests_per_s = kLoad * a.api.v / a.input.v;
    return roughly(a) > 3 * alone;
  };
  s.inputs = {{"load", "95 % of the API", 'a',
               survives(0.95, {0.7, 0.8, 0.9, 0.93, 0.95, 0.98},
                        [&](double share) { return roughly(loaded_to(share)) > 3 * calm; }) +
                   " of it"},
              {"input", "8 MB, exponential", 'a', survives(8, {4, 6, 8, 12, 16}, input_of) + " MB"},
              {"cache", "has 80 % of the inputs", 'a',
               survives(0.8, {0.2, 0.4, 0.6, 0.8, 0.9},
                        [&](double share) { return roughly(mended(loaded, share)) < 2 * calm; }) +
                   " of them"},
              {"batcher", "eight, within 2 ms", 'a',
               survives(8, {1, 4, 8, 16},
                        [&](double most) {
                          InputApi a = mended(loaded, kCached);
                          a.batch_most = static_cast<int64_t>(most);
                          return roughly(a) < 2 * calm;
                        }) +
                   " at once"},
              {"accelerator", "17.5 ms + 2.5 ms an item: what 35 ms leave after the fetch", 'c',
               survives(17.5, {5, 10, 15, 17.5}, [&](double base) {
                 InputApi a = light;
                 a.gpu_base = Seconds(base / 1e3);
                 const double alone = roughly(a);
                 a.requests_per_s = kLoad * a.api.v / a.input.v;
                 return roughly(a) > 3 * alone;
               }) + " ms"}};
  s.figures = {{"light", fmt::format("{:.0f} ms", calm)},
               {"at 95 % of the API", fmt::format("{:.0f} ms", ms(loaded))},
               {"at 90 %", fmt::format("{:.0f} ms", ms(loaded_to(0.9)))},
               {"batcher alone", fmt::format("{:.0f} ms", ms(batched))},
               {"cache and batcher", fmt::format("{:.0f} ms", ms(mended(loaded, kCached)))},
               {"twice the bandwidth instead", fmt::format("{:.0f} ms", ms(wide))}};
  s.cause = "The queue in front of the API: its last ten percent cost more than all the others.";
  s.fix = "A cache, or twice the bandwidth; a batcher alone does not help.";
  s.symptom = ms(loaded) > 3 * calm;
  s.without_cause = ms(wide) > 3 * calm || ms(mended(loaded, kCached)) > 3 * calm;
  s.verdict = fmt::format(
      "Holds as a plain queue (M/G/1): {:.0f} -> {:.0f} -> {:.0f} ms where 35 -> 220 -> 42 was "
      "told.",
      calm, ms(loaded), ms(mended(loaded, kCached)));
  return s;
}

}  // namespace assay
