#include "clefkit/synth/release_files.h"

#include <utility>

#include "clefkit/base/json.h"

namespace clefkit {
namespace {

// Pattern B of model.md 9.2.
constexpr char kPretokenizeRegex[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// All these files are Python's json.dumps(indent=2) with a line feed.
std::string file_text(const Json& json) { return to_pretty_string(json) + "\n"; }

Json size_json(std::uint64_t value) { return Json(value); }

Json half_three_times() { return Json::array({0.5, 0.5, 0.5}); }

Json rescale_factor() { return Json::Number{"0.00392156862745098"}; }

Json pixel_limits(int longest_edge, int shortest_edge) {
  return Json::object({{"longest_edge", longest_edge}, {"shortest_edge", shortest_edge}});
}

}  // namespace

std::string generation_config_json(std::optional<std::uint64_t> eos_token_id) {
  Json json = Json::object({{"_from_model_config", true}});
  if (eos_token_id) json.set("eos_token_id", *eos_token_id);
  json.set("transformers_version", "5.10.2");
  json.set("use_cache", true);
  return file_text(json);
}

std::string processor_config_json(const VisionConfig& vision) {
  const Json patch = size_json(vision.patch_size);
  const Json merge = size_json(vision.spatial_merge_size);
  const Json temporal = size_json(vision.temporal_patch_size);
  const Json image = Json::object({{"do_convert_rgb", true},
                                   {"do_normalize", true},
                                   {"do_rescale", true},
                                   {"do_resize", true},
                                   {"image_mean", half_three_times()},
                                   {"image_processor_type", "Qwen2VLImageProcessor"},
                                   {"image_std", half_three_times()},
                                   {"merge_size", merge},
                                   {"patch_size", patch},
                                   {"resample", 3},
                                   {"rescale_factor", rescale_factor()},
                                   {"size", pixel_limits(16777216, 65536)},
                                   {"temporal_patch_size", temporal}});
  const Json video = Json::object({{"do_convert_rgb", true},
                                   {"do_normalize", true},
                                   {"do_rescale", true},
                                   {"do_resize", true},
                                   {"do_sample_frames", true},
                                   {"fps", 2},
                                   {"image_mean", half_three_times()},
                                   {"image_std", half_three_times()},
                                   {"max_frames", 768},
                                   {"merge_size", merge},
                                   {"min_frames", 4},
                                   {"patch_size", patch},
                                   {"resample", 3},
                                   {"rescale_factor", rescale_factor()},
                                   {"return_metadata", false},
                                   {"size", pixel_limits(25165824, 4096)},
                                   {"temporal_patch_size", temporal},
                                   {"video_processor_type", "Qwen3VLVideoProcessor"}});
  return file_text(Json::object({{"image_processor", image},
                                 {"processor_class", "Qwen3VLProcessor"},
                                 {"video_processor", video}}));
}

std::string tokenizer_config_json() {
  // transformers writes the media tokens at the top and again under their own key.
  const Json::Object media{
      {"audio_bos_token", "<|audio_start|>"}, {"audio_eos_token", "<|audio_end|>"},
      {"audio_token", "<|audio_pad|>"},       {"image_token", "<|image_pad|>"},
      {"video_token", "<|video_pad|>"},       {"vision_bos_token", "<|vision_start|>"},
      {"vision_eos_token", "<|vision_end|>"}};
  return file_text(Json::object({{"add_prefix_space", false},
                                 media[0],
                                 media[1],
                                 media[2],
                                 {"backend", "tokenizers"},
                                 {"bos_token", nullptr},
                                 {"clean_up_tokenization_spaces", false},
                                 {"eos_token", "<|im_end|>"},
                                 {"errors", "replace"},
                                 media[3],
                                 {"model_max_length", 262144},
                                 {"model_specific_special_tokens", media},
                                 {"pad_token", "<|endoftext|>"},
                                 {"pretokenize_regex", kPretokenizeRegex},
                                 {"split_special_tokens", false},
                                 {"tokenizer_class", "Qwen2Tokenizer"},
                                 {"unk_token", nullptr},
                                 media[4],
                                 media[5],
                                 media[6]}));
}

std::string safetensors_index_json(const std::map<std::string, std::string>& shard_of_tensor,
                                   std::uint64_t total_parameters, std::uint64_t total_size_bytes) {
  Json::Object weight_map;
  for (const auto& [tensor, shard] : shard_of_tensor) weight_map.emplace_back(tensor, shard);
  return file_text(Json::object({{"metadata", Json::object({{"total_parameters", total_parameters},
                                                            {"total_size", total_size_bytes}})},
                                 {"weight_map", std::move(weight_map)}}));
}

}  // namespace clefkit
