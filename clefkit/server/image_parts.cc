#include "clefkit/server/image_parts.h"

#include <utility>

#include "clefkit/server/wire.h"

namespace clefkit::server {

bool is_image_part(const Json& value) {
  const Json* const type = value.find("type");
  return type != nullptr && type->is_string() && type->string() == "image_url" &&
         value.find("image_url") != nullptr;
}

std::string image_place(std::size_t index) { return fmt::format("images[{}]", index); }

Json image_source(Json item, const std::string& where) {
  if (!item.is_object() || item.find("base64") != nullptr) return item;
  Json* url = find_member(item, "image_url");
  if (url == nullptr) {
    refuse_invalid(where,
                   "an object without base64 or image_url, expected a data URL, base64, "
                   "{{\"content_type\", \"base64\"}} or an image_url part");
  }
  if (url->is_object()) url = find_member(*url, "url");
  if (url == nullptr || !url->is_string()) {
    refuse_invalid(where + ".image_url", "{}, expected a data URL or {{\"url\"}} with one",
                   url == nullptr ? "an object without url" : found(url));
  }
  return std::move(*url);
}

// Recurses as deep as the value is nested, which its parser has bounded.
void move_images(Json& state, std::vector<MediaSource>& images) {
  if (state.is_array()) {
    for (Json& item : state.items()) move_images(item, images);
  } else if (is_image_part(state)) {
    const std::string place = image_place(images.size());
    images.push_back({image_source(std::move(state), place), place});
    state = Json::object({{"type", "image_url"}, {"image_url", place}});
  } else if (state.is_object()) {
    for (auto& [name, value] : state.members()) move_images(value, images);
  }
}

}  // namespace clefkit::server
