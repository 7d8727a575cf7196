// Stories of the building and of the input: pump, hot afternoon, power bill, input API.
#include <algorithm>

#include <fmt/format.h>

#include "economics/cost.h"
#include "runs.h"
#include "sim/input_api.h"
#include "site/heat.h"
#include "story.h"

namespace assay {

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
  const auto reduction = [&](double supply) {
    HeatSetup h = plant;
    h.loop.supply_c = supply;
    const HeatResult r = day(h, ThermalControl::kReactive), f = day(h, ThermalControl::kForecast);
    return r.events > 0 ? 1 - f.events / r.events : 0.0;
  };
  s.inputs = {
      {"H200 on a cold plate", "resistances of data/h200", 'm', ""},
      {"coolant", "42 C", 'a',
       survives({30, 36, 39, 42, 44, 48}, [&](double c) { return reduction(c) > 0.5; }) + " C"},
      {"forecast", "70 % of load steps, 120 s ahead", 'a', ""}};
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
  s.verdict =
      "Holds: the 70 % is the share of load steps that the forecast sees. Worth 0.2 % of time.";
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
  s.inputs = {{"climate", "Phoenix, July, from its typical year", 'm', ""},
              {"plant", "dry coolers: the coolant follows the air", 'a', ""},
              {"clock against temperature", "-0.11 % a kelvin under the power cap", 'm', ""}};
  s.figures = {
      {"clock at 15 h against 5 h", fmt::format("{:.2f} % lower", 100 * (1 - day / night))},
      {"night shift of 12 h",
       fmt::format("{:+.2f} % an hour, and half of the hours idle", 100 * gain / 2)},
      {"with a chiller",
       fmt::format("{:.2f} % lower", 100 * (1 - clock_at(chilled, 15) / clock_at(chilled, 5)))}};
  s.cause = "Leakage grows with temperature, so the power cap leaves a lower clock.";
  s.fix = "Colder coolant on hot afternoons; not a night shift: it idles what is paid for.";
  s.symptom = gain > 0.002;
  s.without_cause = clock_at(chilled, 5) / clock_at(chilled, 15) - 1 > 0.002;
  s.verdict = "The slow afternoon holds, at 0.7 % (Meta saw 1-2 %); the night shift does not pay.";
  s.commands = {"assay simulate examples/stories/phoenix-july.yaml --start 2026-07 --days 31"};
  return s;
}

Story bill_story(const std::string&) {
  Story s;
  s.name = "bill";
  s.claim = "100 nodes at 70 % and $0.12 a kWh cost $60,000 of energy a year.";
  constexpr EnergyPrice kPrice{0.12 / kJoulesPerKwh};
  constexpr double kNodes = 100, kUsed = 0.7;
  constexpr Watts kDgx{10200};  // nameplate of a DGX H100
  const Watts implied = implied_node_power(Dollars(60000), kNodes, kUsed, 1, kPrice);
  const Dollars dgx = energy_per_year(kNodes, kDgx, Watts(0), kUsed, 1, kPrice);
  s.inputs = {{"use", "70 %, nothing drawn at rest, PUE 1", 'a', "any: a higher PUE implies less"},
              {"DGX H100", "10.2 kW nameplate", 's',
               survives({1000, 2000, 5000, 8000, 10200}, [&](double w) {
                 return energy_per_year(kNodes, Watts(w), Watts(0), kUsed, 1, kPrice).v > 66000;
               }) + " W"}};
  s.figures = {{"node that the bill implies", fmt::format("{:.0f} W at load", implied.v)},
               {"100 DGX H100", fmt::format("${:.0f} a year", dgx.v)}};
  s.cause = "The bill is that of a CPU or one-GPU node.";
  s.fix = "Ask what a node is: eight GPUs cost twelve times as much.";
  s.symptom = dgx.v > 10 * 60000;
  s.without_cause = energy_per_year(kNodes, implied, Watts(0), kUsed, 1, kPrice).v > 10 * 60000;
  s.verdict = "Does not hold for GPU nodes; it would if `node` meant `GPU`.";
  return s;
}

Story api_story(const std::string&) {
  Story s;
  s.name = "api";
  s.claim = "An input API of 800 MB/s turned 35 ms into 220 ms; cache and batcher made it 42 ms.";
  constexpr int64_t kRequests = 200'000;
  InputApi light;
  InputApi loaded = light;
  loaded.requests_per_s = 94.3;
  InputApi fixed = loaded;
  fixed.cached = 0.8;
  fixed.batch_most = 8;
  fixed.batch_wait = Seconds(2e-3);
  InputApi wide = loaded;
  wide.api = Bandwidth(1.6e9);
  const auto ms = [&](const InputApi& a) {
    return simulate_input_api(a, kRequests, 1).mean.v * 1e3;
  };
  s.inputs = {{"input", "8 MB, exponential", 'a', ""},
              {"requests", "94.3 a second: what 220 ms imply", 'c',
               survives({70, 80, 88, 92, 94.3, 97},
                        [&](double rate) {
                          InputApi a = loaded;
                          a.requests_per_s = rate;
                          return ms(a) > 2 * ms(light);
                        }) +
                   " a second"},
              {"accelerator", "17.5 ms + 2.5 ms an item", 'a', ""}};
  s.figures = {{"light", fmt::format("{:.0f} ms", ms(light))},
               {"at 94 % of the API", fmt::format("{:.0f} ms", ms(loaded))},
               {"cache of 80 % and batcher", fmt::format("{:.0f} ms", ms(fixed))},
               {"twice the bandwidth instead", fmt::format("{:.0f} ms", ms(wide))}};
  s.cause = "The queue in front of the API: its last ten percent cost more than all the others.";
  s.fix = "A cache, or twice the bandwidth; a batcher alone does not help.";
  s.symptom = ms(loaded) > 5 * ms(light);
  s.without_cause = ms(wide) > 5 * ms(light);
  s.verdict = "Holds as a plain queue (M/G/1).";
  return s;
}

}  // namespace assay
