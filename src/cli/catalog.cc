// assay catalog: what is known, with sources.
#include <algorithm>

#include <fmt/format.h>

#include "cli/commands.h"
#include "report/catalog_report.h"

namespace assay {
namespace {

int list(const Context& context, const std::string& kind) {
  const std::vector<std::string>& kinds = catalog_kinds();
  if (!kind.empty() && std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
    const std::string near = nearest(kind, kinds);
    return reject(context,
                  UsageError{fmt::format("unknown kind `{}`", sanitize(kind, 60)),
                             near.empty() ? fmt::format("kinds: {}", fmt::join(kinds, ", "))
                                          : fmt::format("did you mean `{}`?", near)});
  }
  return deliver(context, catalog_list_text(catalog(), kind, context.style),
                 catalog_list_json(catalog(), kind, context.stamp), kYes);
}

int show(const Context& context, const std::string& name) {
  const std::string text = catalog_show_text(catalog(), name, context.style);
  if (text.empty()) {
    const std::string near = nearest(name, catalog_names(catalog()));
    return reject(context, UsageError{fmt::format("`{}` is not in the catalog", sanitize(name, 60)),
                                      near.empty() ? "assay catalog list"
                                                   : fmt::format("did you mean `{}`?", near)});
  }
  return deliver(context, text, catalog_show_json(catalog(), name, context.stamp), kYes);
}

int run(const Context& context, const Arguments& args) {
  const std::vector<std::string>& words = args.operands;
  if (words.empty()) return list(context, "");
  if (words[0] == "list" && words.size() <= 2)
    return list(context, words.size() == 2 ? words[1] : "");
  if (words[0] == "show" && words.size() == 2) return show(context, words[1]);
  return reject(context,
                UsageError{"catalog takes `list [KIND]` or `show NAME`", "assay catalog -h"});
}

}  // namespace

Command catalog_command() {
  return {"catalog",
          "[list [KIND] | show NAME]",
          "accelerators, models, stacks, sites, prices: what is known, with sources",
          "Kinds: accelerators, nodes, fabrics, clusters, models, stacks, kernels, collectives, "
          "climates, tariffs, cooling, tiers, storage, offers, sites, reliability, "
          "operations.\n"
          "`show` prints every figure of an entry with its mark, its source and its line in the "
          "catalog.",
          {},
          {"assay catalog list models", "assay catalog show h100-sxm5-80gb"},
          run};
}

}  // namespace assay
