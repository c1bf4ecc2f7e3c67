#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "clefkit/base/json.h"
#include "clefkit/questions/request.h"

namespace clefkit::server {

// One entry of `images` as media/ takes it: an image_url part, {type: "image_url",
// image_url: {url}} or {…, image_url: url}, becomes its URL; anything else stays as it is. Throws
// Error(kInvalidArgument) for an object that is none of the known forms.
Json image_source(Json item, const std::string& where);

// Whether a value is an image_url part, as chat messages have them.
bool is_image_part(const Json& value);

// Takes the image_url parts out of a state and appends them to
// `images`. In a part's place stays which image it was: `"image_url": "images[0]"`.
void move_images(Json& state, std::vector<MediaSource>& images);

// What a state says instead of an image's bytes: `images[0]`.
std::string image_place(std::size_t index);

}  // namespace clefkit::server
