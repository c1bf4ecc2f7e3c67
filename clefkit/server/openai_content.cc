#include "clefkit/server/openai_content.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "clefkit/server/image_parts.h"
#include "clefkit/server/wire.h"

namespace clefkit::server {
namespace {

constexpr OpenAiContentRules kUserRules{
    .input_text = true, .input_image = true, .input_json = true};
constexpr OpenAiContentRules kInstructionRoleRules{.input_text = true};
constexpr OpenAiContentRules kAssistantRules{.output_text = true, .refusal = true};
constexpr OpenAiContentRules kToolOutputRules{.input_text = true, .input_image = true};

std::string& text_member(Json& object, const std::string& name, const std::string& where) {
  Json* const value = find_member(object, name);
  if (value == nullptr || !value->is_string()) {
    refuse_invalid(where + "." + name, "{}, expected a string", found(value));
  }
  return value->string();
}

// What input_json's bounds count. Recurses as deep as the value is nested, which the parser has
// bounded.
struct Extent {
  std::size_t depth = 0, values = 0;
};
Extent extent_of(const Json& value) {
  Extent extent{0, 1};
  const auto add = [&](const Json& inner) {
    const Extent of_inner = extent_of(inner);
    extent.depth = std::max(extent.depth, of_inner.depth);
    extent.values += of_inner.values;
  };
  if (value.is_array()) {
    for (const Json& item : value.items()) add(item);
  } else if (value.is_object()) {
    for (const auto& [name, member] : value.members()) add(member);
  } else {
    return extent;
  }
  ++extent.depth;
  return extent;
}

Json read_json_part(Json& part, const std::string& part_place) {
  constexpr std::size_t kMostDepth = 32, kMostValues = 10'000, kMostBytes = 256 << 10;
  const std::string where = part_place + ".data";
  Json* const data = find_member(part, "data");
  const auto is_object = [](const Json& item) { return item.is_object(); };
  if (data == nullptr ||
      !(data->is_object() || (data->is_array() && std::ranges::all_of(data->items(), is_object)))) {
    refuse_invalid(where, "{}, expected an object or a list of objects", found(data));
  }
  const Extent extent = extent_of(*data);
  if (extent.depth > kMostDepth) {
    refuse_invalid(where, "nested {} deep, expected at most {}", extent.depth, kMostDepth);
  }
  if (extent.values > kMostValues) {
    refuse_invalid(where, "{} values, expected at most {}", extent.values, kMostValues);
  }
  if (const std::size_t bytes = to_string(*data).size(); bytes > kMostBytes) {
    refuse_invalid(where, "{} bytes, expected at most {}", bytes, kMostBytes);
  }
  return std::move(*data);
}

void read_part(Json& part, const std::string& where, const OpenAiContentRules& rules,
               std::vector<MediaSource>& images, Json& out) {
  const Json* const type = part.find("type");
  const auto is = [&](bool allowed, std::string_view name) {
    return allowed && type != nullptr && type->is_string() && type->string() == name;
  };
  if (is(rules.input_text, "input_text") || is(rules.output_text, "output_text")) {
    out.push_back(std::move(text_member(part, "text", where)));
  } else if (is(rules.refusal, "refusal")) {
    out.push_back(Json::object({{"refusal", std::move(text_member(part, "refusal", where))}}));
  } else if (is(rules.input_json, "input_json")) {
    out.push_back(read_json_part(part, where));
  } else if (is(rules.input_image, "input_image")) {
    if (rules.marks_images) out.push_back(Json::object({{"image", image_place(images.size())}}));
    images.push_back({std::move(text_member(part, "image_url", where)), where + ".image_url"});
  } else {
    refuse_invalid(where + ".type", "{}, expected a part that may stand here",
                   part.is_object() ? found(type) : found(&part));
  }
}

// A message as the state has it: of a user who says all there is, the content alone.
Json read_message(Json& item, const std::string& where, bool is_sole,
                  std::vector<MediaSource>& images) {
  const std::string role = text_member(item, "role", where);
  OpenAiContentRules rules;
  if (role == "user") {
    rules = kUserRules;
    rules.marks_images = !is_sole;
  } else if (role == "assistant") {
    rules = kAssistantRules;
  } else if (role == "developer" || role == "system") {
    rules = kInstructionRoleRules;
  } else {
    refuse_invalid(where + ".role", "{}, expected user, developer, system or assistant",
                   in_quotes(role));
  }
  Json content =
      read_openai_content(find_member(item, "content"), where + ".content", rules, images);
  if (is_sole && role == "user") return content;
  return Json::object({{"role", role}, {"content", std::move(content)}});
}

using CallIds = std::unordered_set<std::string>;

// A call of a tool, or what it returned; `arguments` and `input` are texts that a model wrote.
Json read_tool_item(Json& item, const std::string& type, const std::string& where, CallIds& calls,
                    std::vector<MediaSource>& images) {
  std::string call_id = text_member(item, "call_id", where);
  Json out = Json::object({{"type", type}, {"call_id", call_id}});
  if (type == "function_call" || type == "custom_tool_call") {
    const std::string text = type == "function_call" ? "arguments" : "input";
    out.set("name", std::move(text_member(item, "name", where)));
    out.set(text, std::move(text_member(item, text, where)));
    calls.insert(type + " " + call_id);
    return out;
  }
  const std::string call = type.substr(0, type.size() - std::string_view("_output").size());
  if (!calls.contains(call + " " + call_id)) {
    refuse_invalid(where + ".call_id", "{}, expected that of a {} before it", in_quotes(call_id),
                   call);
  }
  out.set("output", read_openai_content(find_member(item, "output"), where + ".output",
                                        kToolOutputRules, images));
  return out;
}

}  // namespace

Json read_openai_content(Json* content, const std::string& where, const OpenAiContentRules& rules,
                         std::vector<MediaSource>& images) {
  if (content != nullptr && content->is_string()) return std::move(*content);
  if (content == nullptr || !content->is_array() || content->items().empty()) {
    refuse_invalid(where, "{}, expected a string or a list of parts",
                   content != nullptr && content->is_array() ? "an empty list" : found(content));
  }
  Json out = Json::array();
  for (std::size_t i = 0; i < content->items().size(); ++i) {
    read_part(content->items()[i], fmt::format("{}[{}]", where, i), rules, images, out);
  }
  if (out.items().empty()) return "";
  if (out.items().size() > 1) return out;
  return std::move(out.items()[0]);
}

Json read_openai_input(Json* input, std::vector<MediaSource>& images) {
  if (input != nullptr && input->is_string()) return std::move(*input);
  if (input == nullptr || !input->is_array() || input->items().empty()) {
    refuse_invalid("input", "{}, expected a string or a list of items",
                   input != nullptr && input->is_array() ? "an empty list" : found(input));
  }
  const bool is_sole = input->items().size() == 1;
  CallIds calls;
  Json state = Json::array();
  for (std::size_t i = 0; i < input->items().size(); ++i) {
    Json& item = input->items()[i];
    const std::string where = fmt::format("input[{}]", i);
    if (!item.is_object()) refuse_invalid(where, "{}, expected an object", found(&item));
    const Json* const given = find_value(item, "type");
    const std::string type = given == nullptr ? "message" : text_member(item, "type", where);
    if (type == "message") {
      Json message = read_message(item, where, is_sole, images);
      if (is_sole) return message;
      state.push_back(std::move(message));
    } else if (type == "function_call" || type == "custom_tool_call" ||
               type == "function_call_output" || type == "custom_tool_call_output") {
      state.push_back(read_tool_item(item, type, where, calls, images));
    } else {
      refuse_invalid(where + ".type",
                     "{}, expected message, function_call, custom_tool_call or one of the two "
                     "with _output after it",
                     in_quotes(type));
    }
  }
  return state;
}

}  // namespace clefkit::server
