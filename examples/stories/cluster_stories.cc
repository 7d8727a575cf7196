// Stories of whole clusters: two teams, growth that does not pay, images from afar, the checkpoint.
#include <fmt/format.h>

#include "economics/cost.h"
#include "runs.h"
#include "story.h"
#include "world/names.h"

namespace assay {
namespace {

constexpr int kRuns = 12;
constexpr int kRunsOfRange = 4;  // over which a conclusion survives
constexpr double kTeamTokens = 2e12;
constexpr double kTeamDaysMost = 3650;
// The mean GPU job of an LLM cluster: 663,813 jobs of Seren (InternLM/AcmeTrace).
constexpr double kJobSeconds = 1414;

double days(const StoryRun& r) { return r.many.period.mean / kSecondsPerDay; }

double busy(const StoryRun& r) {
  double steps = 0;
  for (int i = 0; i <= static_cast<int>(Account::kHostCopy); ++i)
    steps += r.many.mean[static_cast<Account>(i)].v;
  return steps / r.many.paid.mean;
}

Change spares(int64_t nodes) {
  return [nodes](Description& d) { d.operations.spares = nodes; };
}

Change noticed_within(double minutes) {
  return [minutes](Description& d) { d.operations.noticed_within = Seconds(60 * minutes); };
}

Change spare_share(double share) {
  return [share](Description& d) { d.operations.spare_share = share; };
}

}  // namespace

Story team_story(const std::string& folder) {
  Story s;
  s.name = "team";
  s.claim = "The same model on 8,192 GPUs is done in days on one cluster and never on another.";
  const auto run = [&](const char* file, const Change& change = nullptr, int runs = kRuns) {
    return story_run(folder + file, kTeamDaysMost, kTeamTokens, runs, change);
  };
  const StoryRun a = run("/team-a.yaml"), b = run("/team-b.yaml");
  const StoryRun none = run("/team-b.yaml", spares(0));
  const StoryRun mended =
      run("/team-b.yaml", [&a](Description& d) { d.operations = a.description.operations; });
  const auto slower = [&](const StoryRun& other) { return days(other) > 1.3 * days(a); };
  const auto still = [&](const Change& change) {
    return slower(run("/team-b.yaml", change, kRunsOfRange));
  };
  const auto of_the_job = [&](double tokens, const Change& change_a) {
    const auto took = [&](const char* file, const Change& change) {
      return days(story_run(folder + file, kTeamDaysMost, tokens, kRunsOfRange, change));
    };
    return took("/team-b.yaml", nullptr) > 1.3 * took("/team-a.yaml", change_a);
  };
  s.inputs = {
      {"job", "405B, 2 T tokens", 'a',
       survives(2, {0.5, 1, 2, 4}, [&](double t) { return of_the_job(t * 1e12, nullptr); }) +
           " T tokens"},
      {"Team A, fabric and ports", "400G a GPU, non-blocking", 's', ""},
      {"Team A, spares", "2 % of the nodes", 'a',
       survives(
           2, {1, 2, 5},
           [&](double percent) { return of_the_job(kTeamTokens, spare_share(percent / 100)); }) +
           " %"},
      {"Team B, ports", "200G for two GPUs", 'a',
       survives(200, {100, 200, 400},
                [&](double gbps) {
                  return still([gbps](Description& d) {
                    d.setting.cluster.node.nic_bandwidth = Bandwidth(gbps / 8 * 1e9);
                  });
                }) +
           " Gbps"},
      {"Team B, failures are noticed", "by the watchdog, after 10 min", 'a',
       survives(10, {1, 3, 10}, [&](double minutes) { return still(noticed_within(minutes)); }) +
           " min"},
      {"Team B, spine", "4:1, beside ports of 200G for two GPUs", 'a',
       survives(4, {1, 2, 4, 8},
                [&](double over) {
                  return still(
                      [over](Description& d) { d.setting.cluster.fabric.oversubscription = over; });
                }) +
           " to 1"},
      {"Team B, saves", "blocking, every 3 h", 'a',
       survives(3, {0.25, 0.5, 1, 3, 6},
                [&](double h) {
                  return still([h](Description& d) {
                    d.operations.checkpoint.interval = Seconds(h * kSecondsPerHour);
                  });
                }) +
           " h"},
      {"failures", "Llama 3's counts, both teams", 'm', ""},
      {"Team B, spares", "4 of 1,024 nodes", 'a', survives(4, {0, 2, 4, 8, 16, 32}, [&](double n) {
                                                    return still(spares(static_cast<int64_t>(n)));
                                                  }) + " nodes"}};
  s.figures = {
      {"Team A", fmt::format("{:.1f} days, goodput {:.1f} %", days(a), 100 * a.many.goodput.mean)},
      {"Team B", fmt::format("{:.1f} days ({:.0f}-{:.0f}), goodput {:.1f} %", days(b),
                             b.many.period.p5 / kSecondsPerDay, b.many.period.p95 / kSecondsPerDay,
                             100 * b.many.goodput.mean)},
      {"Team B without spares", fmt::format("goodput {:.1f} %", 100 * none.many.goodput.mean)},
      {"Team B operated like Team A", fmt::format("{:.1f} days", days(mended))}};
  s.cause =
      "Not the step (its MFU differs by a few points) but how failures are noticed, mended and "
      "paid for: watchdog, blocking saves every three hours, too few spares.";
  s.fix = "Operate it like Team A: inspected machines, peer checkpoints, 2 % spares.";
  s.symptom = slower(b);
  s.without_cause = slower(mended);
  s.verdict = fmt::format(
      "Holds: {:.1f} times as long. `Never` needs no spares at all: then a node is always in "
      "repair.",
      days(b) / days(a));
  s.commands = {
      "assay compare examples/stories/team-a.yaml examples/stories/team-b.yaml "
      "--runs 50 --deadline 60"};
  return s;
}

Story sixteen_story(const std::string& folder) {
  Story s;
  s.name = "sixteen";
  s.claim = "A cluster grew from 16 to 128 GPUs and got less than twice the speed.";
  const auto predicted = [](Description d) {
    Predictor predictor(d.setting);
    return predictor.predict(d.plan).step.v;
  };
  const Description small = story_description(folder + "/sixteen.yaml");
  Description large = story_description(folder + "/one-hundred-twenty-eight.yaml");
  const double before = predicted(small), after = predicted(large);
  const auto faster = [&](double gbps) {
    Description a = small, b = large;
    for (Description* d : {&a, &b})
      d->setting.cluster.node.nic_bandwidth = Bandwidth(gbps / 8 * 1e9);
    return predicted(a) / predicted(b);
  };
  const auto with_plan = [&](auto change) {
    Description a = small, b = large;
    change(a.plan), change(b.plan);
    return predicted(a) / predicted(b);
  };
  const auto of_model = [&](double billions) {
    const char* name = billions < 2 ? "llama-3.2-1b" : billions < 10 ? "llama-2-7b" : "llama-2-13b";
    Description a = small, b = large;
    for (Description* d : {&a, &b}) {
      d->setting.workload.model = *find_entry<Model>(catalog(), name);
      resolve(d->setting, catalog());
    }
    return predicted(a) / predicted(b);
  };
  Description free_plan = large;
  free_plan.plan = free_plan.setting.stack.defaults;
  free_plan.plan_keys.clear();
  StudyOptions options;
  options.what_ifs = false;
  const PlanResult best = study(free_plan, catalog(), options);
  s.inputs = {
      {"port of a node", "25 Gbps", 'a',
       survives(25, {10, 25, 50, 100, 200, 400}, [&](double g) { return faster(g) < 2; }) +
           " Gbps"},
      {"batch", "256 sequences at both sizes", 'a',
       survives(256, {128, 256, 512, 1024, 2048},
                [&](double batch) {
                  Description a = small, b = large;
                  for (Description* d : {&a, &b})
                    d->setting.workload.global_batch = static_cast<int64_t>(batch);
                  return predicted(a) / predicted(b) < 2;
                }) +
           " sequences"},
      {"model", "7B; gradients grow with it as the work does", 'a',
       survives(6.7, {1.2, 6.7, 13}, [&](double billions) { return of_model(billions) < 2; }) +
           " B parameters"},
      {
          "micro-batch",
          "1",
          'a',
          survives(1, {1, 2, 4},
                   [&](double m) {
                     return with_plan([m](Plan& p) { p.micro_batch = static_cast<int64_t>(m); }) <
                            2;
                   }),
      },
      {"gradients behind the backward pass", "no", 'a',
       with_plan([](Plan& p) { p.overlap_grad = p.overlap_param = true; }) < 2
           ? "either: overlapped they still take longer than the pass"
           : "none"}};
  s.figures = {
      {"16 GPUs", fmt::format("{:.2f} s a step", before)},
      {"128 GPUs, same plan", fmt::format("{:.2f} s: {:.2f} times", after, before / after)},
      {"128 GPUs, best plan", fmt::format("{:.2f} s: {:.1f} times", best.prediction.step.v,
                                          before / best.prediction.step.v)},
      {"128 GPUs, same plan, 400G ports", fmt::format("{:.1f} times", faster(400))}};
  s.cause = "Plain data parallel: every step moves all gradients over one 25G port, at any size.";
  s.fix = "The plan that `assay plan` finds, or faster ports.";
  s.symptom = before / after < 2;
  s.without_cause = faster(400) < 2;
  s.verdict =
      fmt::format("Holds for slow ports; with 400G the same plan gains {:.1f} times.", faster(400));
  s.commands = {"assay scale examples/stories/sixteen.yaml --gpus 16..128 --fix-plan"};
  return s;
}

Story images_story(const std::string& folder) {
  Story s;
  s.name = "images";
  s.claim =
      "GPUs were 38 % busy because images were pulled from far away; a local cache made it 72 %.";
  const double rate =
      story_run(folder + "/images-near.yaml", 0.01, 0, 1).plan.prediction.tokens_per_s;
  const auto run = [&](const char* file, const Change& change = nullptr,
                       double seconds = kJobSeconds) {
    return busy(story_run(folder + file, 30, seconds * rate, kRunsOfRange, change));
  };
  const auto registry = [&](auto set) {
    return run("/images-afar.yaml", [set](Description& d) { set(d.site.registry); });
  };
  const auto nodes = [&](double n) {
    const Change fewer = [n](Description& d) {
      d.setting.cluster.nodes = static_cast<int64_t>(n);
      d.setting.accelerators = 0;
    };
    const double speed =
        story_run(folder + "/images-near.yaml", 0.01, 0, 1, fewer).plan.prediction.tokens_per_s;
    return busy(
        story_run(folder + "/images-afar.yaml", 30, kJobSeconds * speed, kRunsOfRange, fewer));
  };
  const double afar = run("/images-afar.yaml"), near = run("/images-near.yaml");
  const double pulled =
      run("/images-afar.yaml", [](Description& d) { d.operations.prepulled = true; });
  const Description described = story_description(folder + "/images-afar.yaml");
  s.inputs = {
      {"job", fmt::format("{:.0f} s on 128 H100, the mean of Seren's GPU jobs", kJobSeconds), 's',
       survives(1414, {300, 600, 1414, 3600, 4 * 3600.0, 86400},
                [&](double t) { return run("/images-afar.yaml", nullptr, t) < 0.6; }) +
           " s"},
      {"image", fmt::format("{:.0f} GB, the catalog's", described.site.registry.image.v / 1e9), 'a',
       survives(15, {2, 5, 10, 15, 25, 50},
                [&](double gb) {
                  return registry([gb](Registry& r) { r.image = Bytes(gb * 1e9); }) < 0.6;
                }) +
           " GB"},
      {"link to the registry", "1 Gbps for all nodes", 'a',
       survives(1, {0.25, 0.5, 1, 2, 5, 10},
                [&](double gbps) {
                  return registry([gbps](Registry& r) { r.total = Bandwidth(gbps / 8 * 1e9); }) <
                         0.6;
                }) +
           " Gbps"},
      {"nodes of a job", "16", 'a',
       survives(16, {4, 8, 16, 32}, [&](double n) { return nodes(n) < 0.6; }) + " nodes"},
      {"what one node unpacks", "the catalog's rate", 'a',
       survives(1, {0.5, 1, 2}, [&](double times) {
         return registry([times](Registry& r) { r.per_node *= times; }) < 0.6;
       }) + " times it"}};
  s.figures = {{"from afar", fmt::format("{:.0f} % busy", 100 * afar)},
               {"from a cache beside the nodes", fmt::format("{:.0f} % busy", 100 * near)},
               {"pulled before the job", fmt::format("{:.0f} % busy", 100 * pulled)}};
  s.cause =
      "Every node of every job pulls the image over one slow link, and the GPUs are paid for.";
  s.fix = "A registry cache beside the nodes, or images pulled before the job is placed.";
  s.symptom = afar < 0.5;
  s.without_cause = near < 0.5 || pulled < 0.5;
  s.verdict = fmt::format(
      "Holds for short jobs on a slow link: {:.0f} -> {:.0f} % where 38 -> 72 % was told; a run of "
      "a "
      "day would not notice, nor would a link of 10 Gbps.",
      100 * afar, 100 * near);
  s.commands = {"assay simulate examples/stories/images-afar.yaml --tokens 1.6B",
                "assay simulate examples/stories/images-near.yaml --tokens 1.6B"};
  return s;
}

Story tier_story(const std::string& folder) {
  Story s;
  s.name = "tier";
  s.claim =
      "The better tier of a building is worth 31,000 dollars a year; the checkpoint, millions.";
  constexpr int64_t kGpus = 8192;
  const Offer& offer = *find_entry<Offer>(catalog(), "lambda-h100");
  const DollarRate price = *rented_price(offer, "");
  constexpr double kHoursPerYearPaid = 8760;
  const auto cost = [&](const char* tier) {
    for (const Tier& t : catalog().tiers) {
      if (t.name == tier) return downtime_cost(t, kGpus, price).v;
    }
    return 0.0;
  };
  const double tier = cost("tier-iii") - cost("tier-iv");
  const auto lost = [&](const char* file, const Change& change = nullptr) {
    const StoryRun r = story_run(folder + file, 30, 0, change ? kRunsOfRange : kRuns, change);
    return (1 - r.many.goodput.mean) * kGpus * kHoursPerYearPaid * price.v * kSecondsPerHour;
  };
  const double naive = lost("/checkpoint-millions.yaml"), usual = lost("/checkpoint-minutes.yaml");
  const auto holds = [&](const Change& change) {
    return lost("/checkpoint-millions.yaml", change) - usual > 30 * tier;
  };
  s.inputs = {
      {"failures are noticed", "by the watchdog, after 10 min", 'a',
       survives(10, {1, 3, 10}, [&](double minutes) { return holds(noticed_within(minutes)); }) +
           " min"},
      {"spares", "2 % of the nodes", 'a',
       survives(2, {1, 2, 5}, [&](double percent) { return holds(spare_share(percent / 100)); }) +
           " %"},
      {"GPUs and price",
       fmt::format("8,192 at ${:.2f}/h, {}", price.v * kSecondsPerHour, offer.name), 's', ""},
      {"tiers", "availability as quoted for III and IV", 's', ""},
      {"naive saves", "blocking, every 3 h", 'a', survives(3, {0.5, 1, 3, 6}, [&](double h) {
                                                    return lost("/checkpoint-millions.yaml",
                                                                [h](Description& d) {
                                                                  d.operations.checkpoint.interval =
                                                                      Seconds(h * 3600);
                                                                }) -
                                                               usual >
                                                           30 * tier;
                                                  }) + " h"}};
  s.figures = {{"tier III to IV", fmt::format("${:.0f} a year", tier)},
               {"lost to failures, naive", fmt::format("${:.1f} M a year", naive / 1e6)},
               {"lost to failures, good practice", fmt::format("${:.1f} M a year", usual / 1e6)}};
  s.cause = "Failures of nodes interrupt the job every few hours, whatever the building promises.";
  s.fix = "Asynchronous saves every few minutes and machines that are inspected.";
  s.symptom = naive > 30 * tier;
  s.without_cause = usual > 0.3 * naive;
  s.verdict =
      fmt::format("Holds: good practice is worth {:.0f} times the better tier of the building.",
                  (naive - usual) / tier);
  s.commands = {"assay simulate examples/stories/checkpoint-millions.yaml --days 30",
                "assay simulate examples/stories/checkpoint-minutes.yaml --days 30"};
  return s;
}

}  // namespace assay
