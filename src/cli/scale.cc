// assay scale: the same training on more and more accelerators.
#include "plan/scale.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/outlook.h"
#include "cli/progress.h"
#include "report/scale_report.h"
#include "world/place.h"
#include "world/rules.h"

#include <algorithm>

#include <fmt/format.h>

namespace assay {
namespace {

// Sizes beyond a single node need a fabric, which a single node does not have. One that was stated
// to be none stays.
Diagnostics grow_fabric(Description& d, const std::vector<int64_t>& sizes) {
  Setting& setting = d.setting;
  Cluster grown = setting.cluster;
  const bool joined = grow_cluster(grown, *std::max_element(sizes.begin(), sizes.end()), catalog());
  if (!joined) {
    return {problem_of(
        d.origins, "cluster.node",
        fmt::format("the nodes of {} have no NICs, so that more of them cannot be joined",
                    d.cluster_name),
        "state `cluster.node.nics` and `cluster.node.nic_bandwidth`, or name another node")};
  }
  const auto kind = d.origins.find("cluster.fabric.kind");
  const bool stated = kind != d.origins.end() && !kind->second.file.empty() &&
                      !kind->second.file.starts_with("catalog/");
  if (stated && grown.fabric.kind != setting.cluster.fabric.kind) {
    return {problem_of(
        d.origins, "cluster.fabric.kind",
        fmt::format("cluster.fabric joins nothing, and {} nodes need one that does", grown.nodes),
        "state its kind, as in `infiniband`, or sizes of one node")};
  }
  setting.cluster.fabric = grown.fabric;
  resolve(setting, catalog());
  return {};
}

std::vector<int64_t> wanted_sizes(const Arguments& args, const Cluster& cluster) {
  return parse_sizes(args.get("gpus", usual_sizes(cluster)));
}

Arguments without_sizes(Arguments args) {
  std::erase_if(args.options, [](const auto& o) { return o.first == "gpus"; });
  return args;
}

InputRefusal check(const Context&, const Arguments& args) {
  UsageErrors wrong;
  if (args.operands.empty())
    wrong.push_back({"scale needs a workload and a cluster", "assay scale -h"});
  const std::string sizes = args.get("gpus", "");
  const bool readable = !args.has("gpus") || !parse_sizes(sizes).empty();
  if (!readable) {
    wrong.push_back({fmt::format("--gpus: `{}` is not a range of sizes", sanitize(sizes, 40)),
                     "write 16..8192 (doubling) or 16,64,128"});
  }
  InputRefusal refusal = description_refusal(
      without_sizes(args), all_inputs(args), [](Request& r) { r.needs_operations = true; },
      [&](const DescribeAttempt& attempt) {
        Description d = *attempt.readable;
        return readable ? grow_fabric(d, wanted_sizes(args, d.setting.cluster)) : Diagnostics();
      });
  refusal.usage.insert(refusal.usage.begin(), wrong.begin(), wrong.end());
  return refusal;
}

int run(const Context& context, const Arguments& args) {
  ScaleOptions options;
  options.fix_plan = args.has("fix-plan");
  const bool readable = !args.has("gpus") || !parse_sizes(args.get("gpus", "")).empty();
  if (!readable || args.operands.empty()) return refuse(context, check(context, args));
  tl::expected<Description, InputRefusal> description =
      describe_inputs(without_sizes(args), all_inputs(args), "", true);
  if (!description) {
    const InputRefusal all = check(context, args);
    return refuse(context, all.any() ? all : description.error());
  }
  print_error(render(description->warnings));

  Progress progress(context, "scale");
  options.progress = progress.callback();
  Setting& setting = description->setting;
  options.sizes = wanted_sizes(args, setting.cluster);
  if (const Diagnostics problems = grow_fabric(*description, options.sizes); !problems.empty())
    return reject(context, problems);
  fit_batch(setting.workload, options.sizes, description->assumed, description->origins);
  const ScaleResult result = scale(setting, description->plan, description->plan_keys, options);
  bool any = false;
  for (const ScalePoint& p : result.best) any |= p.fits;
  for (const ScalePoint& p : result.fixed) any |= p.fits;
  const ScaleOutlook outlook = scale_outlook(*description, result, context.stamp.seed);
  return deliver(context, scale_text(result, *description, context.style, context.stamp, outlook),
                 scale_json(result, *description, context.stamp, outlook), any ? kYes : kNo);
}

}  // namespace

Command scale_command() {
  return {
      "scale",
      "WORKLOAD CLUSTER [STACK] [PLAN] [RUN] [SITE]",
      "speed-up, efficiency and the point where more GPUs stop paying",
      "The batch stays the same at every size (strong scaling). At each size the best plan is "
      "searched; stated settings of the plan stay.\n"
      "With --fix-plan one plan is kept (the stated one, or the best of the first size) and only "
      "data "
      "parallelism grows; the best plan at each size stands beside it, and what the kept plan gets "
      "wrong at the last size is attributed to its settings.\n"
      "Break-even is the first doubling that gives less than 1.5x the tokens per second: a token "
      "then "
      "costs more than 4/3 of what it did.\n"
      "What runs over weeks make of the best plans (more accelerators fail more often) is "
      "estimated "
      "by closed forms from RUN and SITE, as in `assay plan`.",
      {{"gpus", 0, "SIZES", "sizes, as 16..8192 (doubling) or 16,64,128",
        "Default: 16..8192, in whole nodes."},
       {"tokens", 0, "T", "tokens to train on, e.g. 2T", ""},
       {"site", 0, "S", "where it runs, a catalog name or a file", ""},
       {"run", 0, "R", "how it is operated, a catalog name or a file", ""},
       {"fix-plan", 0, "", "keep one plan, let only data parallelism grow", ""}},
      {"assay scale llama-3.1-70b examples/h100-128.yaml --gpus 64..8192",
       "assay scale examples/stories/sixteen.yaml --gpus 16..128 --fix-plan"},
      run,
      check};
}

}  // namespace assay
