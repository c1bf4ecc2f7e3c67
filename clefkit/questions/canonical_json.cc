#include "clefkit/questions/canonical_json.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace clefkit {
namespace {

void append_number(std::string& out, const Json& value) {
  const std::string& text = value.number().text;
  if (value.number().is_integer()) {
    out += text == "-0" ? "0" : text;
    return;
  }
  const double number = *value.as_double();
  if (std::isinf(number)) {
    out += number < 0 ? "-Infinity" : "Infinity";
  } else {
    out += python_repr(number);
  }
}

void append_canonical(std::string& out, const Json& value) {
  if (value.is_null()) {
    out += "null";
  } else if (value.is_bool()) {
    out += value.boolean() ? "true" : "false";
  } else if (value.is_number()) {
    append_number(out, value);
  } else if (value.is_string()) {
    append_json_string(out, value.string());
  } else if (value.is_array()) {
    out += '[';
    bool first = true;
    for (const Json& item : value.items()) {
      if (!std::exchange(first, false)) out += ',';
      append_canonical(out, item);
    }
    out += ']';
  } else {
    std::vector<const Json::Member*> sorted;
    sorted.reserve(value.members().size());
    for (const Json::Member& member : value.members()) sorted.push_back(&member);
    // Bytes of UTF-8 compare as code points do.
    std::sort(sorted.begin(), sorted.end(),
              [](const Json::Member* a, const Json::Member* b) { return a->first < b->first; });
    out += '{';
    bool first = true;
    for (const Json::Member* member : sorted) {
      if (!std::exchange(first, false)) out += ',';
      append_json_string(out, member->first);
      out += ':';
      append_canonical(out, member->second);
    }
    out += '}';
  }
}

}  // namespace

std::string canonical_json(const Json& value) {
  std::string out;
  append_canonical(out, value);
  return out;
}

std::string render_value(const Json& value) {
  return value.is_string() ? value.string() : canonical_json(value);
}

}  // namespace clefkit
