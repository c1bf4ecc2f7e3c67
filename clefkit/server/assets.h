#pragma once

#include <string>
#include <vector>

#include "clefkit/base/json.h"
#include "clefkit/http/message.h"
#include "clefkit/questions/request.h"

// System One's assets (api.md 1.8, typesafe-sdk 0.7): pictures with names, which stand for them in
// the texts of a request.
namespace clefkit::server {

struct Asset {
  std::string name;   // Wherever it stands in a text, it means this picture.
  std::string place;  // Of the entry, for messages: `assets."<image:…>"`.
  Json image{};       // As media/ takes it.
};

// The JSON of a multipart body's part `request`, with the bytes of the other parts, as base64, in
// the place of the `assets` entries that name them. Throws Refusal(kNotJson) and
// Error(kInvalidArgument): also for a part that no entry names, or two.
Json read_multipart_body(const http::Request& request, const JsonLimits& limits);

// Takes `assets` out of a body: {name: {"type": "image", "format": …, "data_base64": …}}. Throws
// Error(kInvalidArgument).
std::vector<Asset> take_assets(Json& body);

// Appends the assets' pictures to the request's images. In the state, the instructions and the
// options' descriptions each name becomes the picture's place, `images[0]`; where several names
// match, the longest. Throws Refusal(kUnusedAsset) when a name stands nowhere.
void place_assets(std::vector<Asset> assets, Request& request);

}  // namespace clefkit::server
