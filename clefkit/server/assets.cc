#include "clefkit/server/assets.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "clefkit/http/multipart.h"
#include "clefkit/media/base64.h"
#include "clefkit/server/image_parts.h"
#include "clefkit/server/wire.h"

namespace clefkit::server {
namespace {

constexpr std::string_view kRequestPart = "request";
constexpr char kAssets[] = "assets";
constexpr std::size_t kMaxAssets = 64;
// Looking for names at one place of a text takes as many steps; clients' own have 40.
constexpr std::size_t kMaxNameBytes = 64;

std::string asset_place(std::string_view name) {
  return fmt::format("{}.{}", kAssets, in_quotes(name));
}

// Puts the bytes of the part that an entry names into the entry, and marks the part as used.
void fill_in(Json& entry, const std::string& place, const std::vector<http::Part>& parts,
             std::vector<bool>& is_used) {
  const Json* const named = find_value(entry, "part");
  if (named == nullptr) return;
  if (!named->is_string()) refuse_invalid(place + ".part", "{}, expected a string", found(named));
  const auto part = std::ranges::find(parts, named->string(), &http::Part::name);
  if (part == parts.end() || part->name == kRequestPart) {
    refuse_invalid(place + ".part", "no part of the body is called {}", in_quotes(named->string()));
  }
  const auto index = static_cast<std::size_t>(part - parts.begin());
  if (is_used[index]) {
    refuse_invalid(place + ".part", "the part {} is another asset's", in_quotes(part->name));
  }
  is_used[index] = true;
  std::erase_if(entry.members(), [](const Json::Member& member) {
    return member.first == "part" || member.first == "data_base64";
  });
  entry.set("data_base64", encode_base64(part->content));
}

// Finds the longest of some names at a place of a text, in as many steps as that name has bytes.
class NameTree {
 public:
  explicit NameTree(const std::vector<Asset>& assets) {
    for (std::size_t i = 0; i < assets.size(); ++i) {
      std::uint16_t node = 0;
      for (const char c : assets[i].name) {
        std::uint16_t& next = nodes_[node].next[static_cast<unsigned char>(c)];
        if (next == 0) next = static_cast<std::uint16_t>(nodes_.size());
        node = next;
        if (node == nodes_.size()) nodes_.emplace_back();
      }
      nodes_[node].asset = i;
    }
  }

  std::optional<std::size_t> longest_at(std::string_view text) const {
    std::optional<std::size_t> longest;
    std::uint16_t node = 0;
    for (const char c : text) {
      node = nodes_[node].next[static_cast<unsigned char>(c)];
      if (node == 0) break;
      if (nodes_[node].asset) longest = nodes_[node].asset;
    }
    return longest;
  }

 private:
  struct Node {
    std::array<std::uint16_t, 256> next{};  // 0: no name goes on so.
    std::optional<std::size_t> asset;       // Whose name ends here.
  };
  static_assert(kMaxAssets * kMaxNameBytes < std::numeric_limits<std::uint16_t>::max());

  std::vector<Node> nodes_{1};
};

// Replaces names by places, and remembers which of them were there.
class Renaming {
 public:
  Renaming(const std::vector<Asset>& assets, std::size_t first_image)
      : assets_(assets),
        names_(assets),
        first_image_(first_image),
        is_found_(assets.size(), false) {}

  // Recurses as deep as the value is nested, which its parser has bounded. An image_url part is no
  // text, and stays as it is.
  void apply(Json& value) {
    if (value.is_string()) {
      if (auto text = renamed(value.string())) value = Json(std::move(*text));
    } else if (value.is_array()) {
      for (Json& item : value.items()) apply(item);
    } else if (value.is_object() && !is_image_part(value)) {
      for (auto& [key, member] : value.members()) apply(member);
    }
  }

  bool is_found(std::size_t asset) const { return is_found_[asset]; }

 private:
  // Nothing when the text has none of the names.
  std::optional<std::string> renamed(std::string_view text) {
    std::string out;
    bool is_changed = false;
    while (!text.empty()) {
      const auto asset = names_.longest_at(text);
      if (!asset) {
        out += text.front();
        text.remove_prefix(1);
        continue;
      }
      out += image_place(first_image_ + *asset);
      text.remove_prefix(assets_[*asset].name.size());
      is_found_[*asset] = is_changed = true;
    }
    return is_changed ? std::optional(std::move(out)) : std::nullopt;
  }

  const std::vector<Asset>& assets_;
  const NameTree names_;
  const std::size_t first_image_;
  std::vector<bool> is_found_;
};

}  // namespace

Json read_multipart_body(const http::Request& request, const JsonLimits& limits) {
  const std::vector<http::Part> parts = http::parse_multipart(
      request.header("content-type").value_or(""), request.body, kMaxAssets + 1);
  const auto body_part = std::ranges::find(parts, kRequestPart, &http::Part::name);
  if (body_part == parts.end()) {
    refuse_invalid("body", "multipart without a part \"request\", expected one with the JSON");
  }
  Json body = parse_body(body_part->content, "body", limits);
  std::vector<bool> is_used(parts.size(), false);
  is_used[static_cast<std::size_t>(body_part - parts.begin())] = true;
  Json* const assets = find_value(body, kAssets);
  if (assets != nullptr && !assets->is_object()) {
    refuse_invalid(kAssets, "{}, expected an object", found(assets));
  }
  if (assets != nullptr) {
    for (auto& [name, entry] : assets->members()) fill_in(entry, asset_place(name), parts, is_used);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (is_used[i]) continue;
    refuse_invalid(kAssets, "none has \"part\": {}, expected one for each part of the body",
                   in_quotes(parts[i].name));
  }
  return body;
}

std::vector<Asset> take_assets(Json& body) {
  std::vector<Asset> assets;
  Json* const given = find_value(body, kAssets);
  if (given == nullptr) return assets;
  if (!given->is_object() || given->members().empty() || given->members().size() > kMaxAssets) {
    refuse_invalid(
        kAssets, "{}, expected an object with 1 to {} members",
        given->is_object() ? fmt::format("{} members", given->members().size()) : found(given),
        kMaxAssets);
  }
  for (auto& [name, entry] : given->members()) {
    Asset asset{.name = name, .place = asset_place(name)};
    if (name.empty() || name.size() > kMaxNameBytes) {
      refuse_invalid(asset.place, "a name of {} bytes, expected 1 to {}", name.size(),
                     kMaxNameBytes);
    }
    if (!entry.is_object()) {
      refuse_invalid(asset.place, "{}, expected an object", found(&entry));
    }
    const Json* const type = find_value(entry, "type");
    if (type != nullptr && *type != Json("image")) {
      refuse_invalid(asset.place + ".type", "{}, expected \"image\"", found(type));
    }
    if (find_value(entry, "part") != nullptr) {
      refuse_invalid(asset.place + ".part", "expected a multipart body with that part");
    }
    Json* const data = find_value(entry, "data_base64");
    if (data == nullptr || !data->is_string()) {
      refuse_invalid(asset.place + ".data_base64", "{}, expected a string with base64",
                     found(data));
    }
    asset.image = std::move(*data);
    assets.push_back(std::move(asset));
  }
  std::erase_if(body.members(), [](const Json::Member& member) { return member.first == kAssets; });
  return assets;
}

void place_assets(std::vector<Asset> assets, Request& request) {
  if (assets.empty()) return;
  Renaming renaming(assets, request.images.size());
  renaming.apply(request.state);
  for (Question& question : request.questions) {
    if (question.instructions) renaming.apply(*question.instructions);
    for (Option& option : question.options) {
      if (option.description && !option.is_default_description) {
        renaming.apply(*option.description);
      }
    }
  }
  for (std::size_t i = 0; i < assets.size(); ++i) {
    if (renaming.is_found(i)) continue;
    throw Refusal(Refusal::Kind::kUnusedAsset, assets[i].place,
                  "its name stands nowhere in state, instructions or criteria");
  }
  for (Asset& asset : assets) {
    request.images.push_back({std::move(asset.image), std::move(asset.place)});
  }
}

}  // namespace clefkit::server
