#include "clefkit/safetensors/sharded_safetensors.h"

#include <map>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "clefkit/base/error.h"
#include "clefkit/base/file_io.h"
#include "clefkit/base/json.h"

namespace clefkit {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kIndexLimit = std::size_t{32} << 20;

// Tensor name to shard name.
using WeightMap = std::map<std::string, std::string>;

[[noreturn]] void corrupt(const fs::path& file, const std::string& message) {
  throw Error(ErrorCode::kCorruptData, file.string(), message);
}

// A name that cannot lead out of the directory it is joined to.
bool is_plain_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
}

WeightMap read_index(const fs::path& path) {
  const Json index =
      parse_json(read_file(path, kIndexLimit), path.string(), {.bytes = kIndexLimit});
  const Json* const map = index.find("weight_map");
  if (map == nullptr || !map->is_object()) corrupt(path, "no object `weight_map`");
  WeightMap shards;
  for (const auto& [tensor, shard] : map->members()) {
    if (!shard.is_string() || !is_plain_file_name(shard.string())) {
      corrupt(path, fmt::format("{} is placed in {}, expected a file name without folders", tensor,
                                to_string(shard)));
    }
    shards.emplace(tensor, shard.string());
  }
  if (shards.empty()) corrupt(path, "`weight_map` is empty");
  return shards;
}

// A link that leads elsewhere counts: download caches are made of them.
bool is_there(const fs::path& path) {
  std::error_code unreadable;
  return fs::exists(path, unreadable);
}

void check_shard(const SafetensorsFile& shard, const std::string& name, const WeightMap& index,
                 WeightMap& unmet) {
  for (const TensorView& tensor : shard.tensors()) {
    const auto entry = index.find(tensor.name);
    if (entry == index.end()) {
      corrupt(shard.path(), fmt::format("holds {}, which the index does not name", tensor.name));
    }
    if (entry->second != name) {
      corrupt(shard.path(),
              fmt::format("holds {}, which the index places in {}", tensor.name, entry->second));
    }
    unmet.erase(tensor.name);
  }
}

}  // namespace

std::vector<SafetensorsFile> open_sharded_safetensors(const fs::path& directory) {
  const fs::path single_path = directory / "model.safetensors";
  const fs::path index_path = directory / "model.safetensors.index.json";
  std::vector<SafetensorsFile> shards;
  if (is_there(single_path)) {
    shards.emplace_back(single_path);
    return shards;
  }
  if (!is_there(index_path)) {
    throw Error(ErrorCode::kNotFound, directory.string(),
                "holds neither model.safetensors nor model.safetensors.index.json");
  }

  const WeightMap index = read_index(index_path);
  std::set<std::string> names;
  for (const auto& [tensor, shard] : index) names.insert(shard);
  WeightMap unmet = index;
  for (const std::string& name : names) {
    if (!is_there(directory / name)) {
      throw_error(ErrorCode::kNotFound, (directory / name).string(),
                  "the file is absent, but {} names it", index_path.filename().string());
    }
    check_shard(shards.emplace_back(directory / name), name, index, unmet);
  }
  if (!unmet.empty()) {
    const auto& [tensor, name] = *unmet.begin();
    corrupt(directory / name,
            fmt::format("does not hold {}, which the index places in it", tensor));
  }
  return shards;
}

}  // namespace clefkit
