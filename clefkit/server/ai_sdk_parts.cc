#include "clefkit/server/ai_sdk_parts.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "clefkit/server/wire.h"

namespace clefkit::server {
namespace {

std::string_view type_of(const Json& value) {
  const Json* const type = value.find("type");
  return type != nullptr && type->is_string() ? std::string_view(type->string()) : "";
}

bool is_part(const Json& value) {
  const std::string_view type = type_of(value);
  if (type == "text") return value.find("text") != nullptr;
  if (type == "json") return value.find("value") != nullptr;
  return type == "file" && value.find("mediaType") != nullptr && value.find("data") != nullptr;
}

std::string& text_member(Json& object, std::string_view name, const std::string& where) {
  Json* const value = find_member(object, name);
  if (value == nullptr || !value->is_string()) {
    refuse_invalid(fmt::format("{}.{}", where, name), "{}, expected a string", found(value));
  }
  return value->string();
}

// `image`, `image/*` and `image/png` are images.
bool has_media_type(std::string_view media_type, std::string_view kind) {
  return media_type.substr(0, media_type.find('/')) == kind;
}

// The bytes of a file part as base64 text or a URL, which media/ reads or refuses.
std::string source_of(Json& data, const std::string& where) {
  if (data.is_string()) return std::move(data.string());
  const std::string_view type = type_of(data);
  if (type == "url") return std::move(text_member(data, "url", where));
  if (type != "data") {
    refuse_invalid(where, "{}, expected {{\"type\": \"data\", \"data\"}} with base64 text",
                   data.is_object() ? "data of another type" : found(&data));
  }
  const Json* const bytes = find_member(data, "data");
  if (bytes != nullptr && (bytes->is_object() || bytes->is_array())) {
    refuse_invalid(where + ".data", "bytes as {} of numbers, expected base64 text",
                   bytes->kind_name());
  }
  return std::move(text_member(data, "data", where));
}

void read_file(Json& part, const std::string& where, AiSdkState& out) {
  const std::string media_type = text_member(part, "mediaType", where);
  Json* const data = find_member(part, "data");
  if (data == nullptr) refuse_invalid(where + ".data", "missing, expected the file's bytes");
  if (type_of(*data) == "text") {
    out.state.push_back(std::move(text_member(*data, "text", where + ".data")));
    return;
  }
  const bool is_image = has_media_type(media_type, "image");
  if (!is_image && !has_media_type(media_type, "video")) {
    refuse_invalid(where + ".mediaType", "{}, expected image/… or video/…", in_quotes(media_type));
  }
  std::string source = source_of(*data, where + ".data");
  (is_image ? out.images : out.videos).push_back({std::move(source), where + ".data"});
}

}  // namespace

bool is_ai_sdk_parts(const Json& value) {
  return value.is_array() && !value.items().empty() && std::ranges::all_of(value.items(), is_part);
}

AiSdkState read_ai_sdk_parts(Json parts, const std::string& where) {
  if (!parts.is_array()) refuse_invalid(where, "{}, expected an array of parts", found(&parts));
  AiSdkState out{.state = Json::array()};
  for (std::size_t i = 0; i < parts.items().size(); ++i) {
    Json& part = parts.items()[i];
    const std::string place = fmt::format("{}[{}]", where, i);
    const std::string_view type = type_of(part);
    if (type == "text") {
      out.state.push_back(std::move(text_member(part, "text", place)));
    } else if (type == "json") {
      Json* const value = find_member(part, "value");
      if (value == nullptr) refuse_invalid(place + ".value", "missing, expected any JSON value");
      out.state.push_back(std::move(*value));
    } else if (type == "file") {
      read_file(part, place, out);
    } else {
      refuse_invalid(place + ".type", "{}, expected text, json or file",
                     part.is_object() ? found(part.find("type")) : found(&part));
    }
  }
  Json::Array& pieces = out.state.items();
  if (pieces.empty()) {
    out.state = "";
  } else if (pieces.size() == 1) {
    Json sole = std::move(pieces[0]);
    out.state = std::move(sole);
  }
  return out;
}

}  // namespace clefkit::server
