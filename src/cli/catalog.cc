// assay catalog: what is known, with sources.
#include <algorithm>

#include <fmt/format.h>

#include "cli/commands.h"
#include "report/catalog_report.h"

namespace assay {
namespace {

bool is_kind(const std::string& word) {
  const std::vector<std::string>& kinds = catalog_kinds();
  return std::find(kinds.begin(), kinds.end(), word) != kinds.end();
}

UsageError unknown_kind(const std::string& kind) {
  const std::string near = nearest(kind, catalog_kinds());
  return {fmt::format("unknown kind `{}`", sanitize(kind, 60)),
          near.empty() ? fmt::format("kinds: {}", fmt::join(catalog_kinds(), ", "))
                       : fmt::format("did you mean `{}`?", near)};
}

int list(const Context& context, const std::string& kind) {
  if (!kind.empty() && !is_kind(kind)) return reject(context, unknown_kind(kind));
  return deliver(context, catalog_list_text(catalog(), kind, context.style),
                 catalog_list_json(catalog(), kind, context.stamp), kYes);
}

// `stacks.gpt-neox`: two kinds may share a name.
CatalogName parse_name(const std::string& word) {
  const size_t dot = word.find('.');
  const std::string kind = word.substr(0, dot);
  if (dot == std::string::npos || !is_kind(kind)) return {"", word};
  return {kind, word.substr(dot + 1)};
}

int show(const Context& context, const CatalogName& name) {
  if (!name.kind.empty() && !is_kind(name.kind)) return reject(context, unknown_kind(name.kind));
  const std::string text = catalog_show_text(catalog(), name, context.style);
  if (text.empty()) {
    const std::string near = nearest(name.name, catalog_names(catalog(), name.kind));
    const std::string where =
        name.kind.empty() ? "the catalog" : fmt::format("the catalog of {}", name.kind);
    return reject(
        context,
        UsageError{fmt::format("`{}` is not in {}", sanitize(name.name, 60), where),
                   near.empty() ? "assay catalog list" : fmt::format("did you mean `{}`?", near)});
  }
  return deliver(context, text, catalog_show_json(catalog(), name, context.stamp), kYes);
}

int run(const Context& context, const Arguments& args) {
  if (args.has("set")) {
    return reject(context, UsageError{"catalog shows what it holds, without --set",
                                      "a file of your own changes it, or try it with assay plan"});
  }
  const std::vector<std::string>& words = args.operands;
  if (words.empty()) return list(context, "");
  if (words[0] == "list" && words.size() <= 2)
    return list(context, words.size() == 2 ? words[1] : "");
  if (words[0] == "show" && words.size() == 2) return show(context, parse_name(words[1]));
  if (words[0] == "show" && words.size() == 3) return show(context, {words[1], words[2]});
  return reject(
      context, UsageError{"catalog takes `list [KIND]` or `show [KIND] NAME`", "assay catalog -h"});
}

}  // namespace

Command catalog_command() {
  return {"catalog",
          "[list [KIND] | show [KIND] NAME]",
          "accelerators, models, stacks, sites, prices: what is known, with sources",
          "Kinds: accelerators, nodes, fabrics, clusters, models, stacks, kernels, collectives, "
          "climates, tariffs, cooling, tiers, storage, offers, sites, reliability, "
          "operations.\n"
          "`show` prints every figure of an entry with its mark, its source and its line in the "
          "catalog; where two kinds share a name, say which: `show stacks gpt-neox`.",
          {},
          {"assay catalog list models", "assay catalog show h100-sxm5-80gb"},
          run};
}

}  // namespace assay
