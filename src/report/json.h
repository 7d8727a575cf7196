// JSON for the files of this module only: nothing outside report/ sees nlohmann.
//
// Descriptions are written and read by visiting `fields`, so a new field of the world needs no line
// here. Quantities are numbers in base units (bytes, bytes per second, FLOP per second, watts,
// hertz, seconds, dollars per second); enums are their names.
#pragma once

#include <optional>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "base/diagnostic.h"
#include "plan/words.h"
#include "report/screen.h"
#include "world/setting.h"

namespace assay {

using Json = nlohmann::ordered_json;

struct VisitNothing {
  template <class... A>
  void operator()(A&&...) const {}
};
template <class T>
concept HasFields = requires(T& t) { fields(t, VisitNothing{}); };
template <class T>
concept HasName = requires(T& t) { t.name; };

template <class T>
constexpr bool kIsQuantity = false;
template <class Tag>
constexpr bool kIsQuantity<Quantity<Tag>> = true;
template <class T>
constexpr bool kIsVector = false;
template <class T>
constexpr bool kIsVector<std::vector<T>> = true;

template <class T>
Json value_json(const T& value);

struct FieldWriter {
  Json* out;
  template <class T>
  void operator()(std::string_view key, const T& member, const Limits&, std::string_view) const {
    (*out)[std::string(key)] = value_json(member);
  }
};

template <class T>
Json value_json(const T& value) {
  if constexpr (HasFields<const T>) {
    Json object = Json::object();
    if constexpr (HasName<const T>) object["name"] = value.name;
    fields(value, FieldWriter{&object});
    return object;
  } else if constexpr (kIsVector<T>) {
    Json list = Json::array();
    for (const auto& item : value) list.push_back(value_json(item));
    return list;
  } else if constexpr (kIsQuantity<T>) {
    return value.v;
  } else if constexpr (std::is_enum_v<T>) {
    return enum_names(value)[static_cast<size_t>(value)];
  } else {
    return value;
  }
}

// Reads what value_json wrote. Whatever is missing keeps its default; whatever is wrong is noted.
class FieldReader {
 public:
  FieldReader(const Json& object, std::string path, std::string file, Diagnostics& problems)
      : object_(object), path_(std::move(path)), file_(std::move(file)), problems_(problems) {}

  template <class T>
  void operator()(std::string_view key, T& member, const Limits& limits, std::string_view) const {
    const auto found = object_.find(key);
    if (found == object_.end()) return;
    read(*found, path_ + "." + std::string(key), member, limits);
  }

  template <class T>
  void read(const Json& value, const std::string& path, T& member, const Limits& limits) const {
    if constexpr (HasFields<T>) {
      if (!value.is_object()) return wrong(path, "a mapping");
      if constexpr (HasName<T>) {
        if (value.contains("name") && value["name"].is_string()) member.name = value["name"];
      }
      fields(member, FieldReader(value, path, file_, problems_));
    } else if constexpr (kIsQuantity<T>) {
      number(value, path, member.v, limits);
    } else if constexpr (std::is_enum_v<T>) {
      if (!value.is_string()) return wrong(path, "a name");
      const auto names = enum_names(member);
      for (size_t i = 0; i < names.size(); ++i) {
        if (names[i] == value.template get_ref<const std::string&>()) {
          member = static_cast<T>(i);
          return;
        }
      }
      wrong(path, "one of the known names");
    } else if constexpr (std::is_same_v<T, bool>) {
      if (!value.is_boolean()) return wrong(path, "true or false");
      member = value.template get<bool>();
    } else if constexpr (std::is_same_v<T, double>) {
      number(value, path, member, limits);
    } else if constexpr (std::is_same_v<T, int64_t>) {
      double number_read = static_cast<double>(member);
      number(value, path, number_read, limits);
      member = static_cast<int64_t>(number_read);
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!value.is_string()) return wrong(path, "text");
      member = value.template get<std::string>();
    } else {
      static_assert(kIsVector<T>);
      if (!value.is_array()) return wrong(path, "a list");
      T items;
      for (const Json& item : value) {
        typename T::value_type one{};
        read(item, path, one, limits);
        items.push_back(std::move(one));
      }
      member = std::move(items);
    }
  }

 private:
  void wrong(const std::string& path, const std::string& wanted) const {
    Diagnostic d;
    d.message = "`" + path + "` must be " + wanted;
    d.at.file = file_;
    problems_.push_back(std::move(d));
  }

  // A value outside its limits must not reach the model; infinite limits are bounded by what an
  // int64_t holds.
  void number(const Json& value, const std::string& path, double& member,
              const Limits& limits) const {
    if (!value.is_number()) return wrong(path, "a number");
    const double read_value = value.get<double>();
    if (!(read_value >= limits.min && read_value <= limits.max))
      return wrong(path, "within its limits");
    member = read_value;
  }

  const Json& object_;
  std::string path_, file_;
  Diagnostics& problems_;
};

inline Json range_json(const Interval& r) { return Json::array({r.low, r.high}); }

inline Json start_document(const char* schema, const Stamp& stamp) {
  Json doc;
  doc["schema"] = schema;
  doc["assay"] = {
      {"version", stamp.version}, {"catalog", stamp.catalog_date}, {"seed", stamp.seed}};
  return doc;
}

// Text from outside may hold bytes that are not UTF-8; they are replaced, not thrown about.
inline std::string print(const Json& doc) {
  return doc.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// The document that `text` holds, if it is one of `schema` (empty: of any). If not: `problem` and
// `help`; where it is no JSON at all, the place where it breaks off.
std::optional<Json> read_document(const std::string& text, const std::string& file,
                                  std::string_view schema, std::string problem, std::string help,
                                  Diagnostics&);

}  // namespace assay
