#include "clefkit/eval/inspect.h"

#include <algorithm>
#include <map>

#include "clefkit/bundle/open_bundle.h"
#include "clefkit/eval/tensor_errors.h"
#include "clefkit/model/program_plan.h"
#include "clefkit/model/tensor_plan.h"

namespace clefkit {
namespace {

constexpr std::size_t kWorstTensors = 10;

Json count(std::size_t value) { return static_cast<std::uint64_t>(value); }

std::string_view class_name(TensorClass tensor_class) {
  switch (tensor_class) {
    case TensorClass::kTextLinear:
      return "text linear layers";
    case TensorClass::kTextOther:
      return "other text tensors";
    case TensorClass::kEmbedding:
      return "embeddings and final norm";
    case TensorClass::kVision:
      return "vision encoder";
    case TensorClass::kHead:
      break;
  }
  return "decision head";
}

std::uint64_t stored_bytes(const Weight& weight) {
  if (const auto* lut = std::get_if<Lut6Matrix>(&weight)) {
    const std::size_t palettes = lut->shape().palette_count() * Lut6Matrix::kPaletteSize;
    return lut->packed_indices().size() + palettes * sizeof(Half);
  }
  return std::get<TensorView>(weight).bytes.size();
}

Json architecture_of(const ModelConfig& config) {
  const TextConfig& text = config.text;
  const auto full = std::ranges::count(text.layer_types, LayerType::kFullAttention);
  Json json = Json::object({
      {"hidden_size", count(text.hidden_size)},
      {"intermediate_size", count(text.intermediate_size)},
      {"num_hidden_layers", count(text.num_hidden_layers)},
      {"full_attention_layers", count(static_cast<std::size_t>(full))},
      {"num_attention_heads", count(text.num_attention_heads)},
      {"num_key_value_heads", count(text.num_key_value_heads)},
      {"head_dim", count(text.head_dim)},
      {"linear_num_key_heads", count(text.linear_num_key_heads)},
      {"linear_num_value_heads", count(text.linear_num_value_heads)},
      {"linear_key_head_dim", count(text.linear_key_head_dim)},
      {"linear_value_head_dim", count(text.linear_value_head_dim)},
      {"vocab_size", count(text.vocab_size)},
      {"tie_word_embeddings", text.tie_word_embeddings},
      {"head", Json::object({{"width", count(config.head.width)},
                             {"routing_layers", count(config.head.routing_layers)},
                             {"layers", count(config.head.layers)},
                             {"heads", count(config.head.heads)},
                             {"feedforward", count(config.head.feedforward)}})},
  });
  json.set("vision",
           config.has_vision()
               ? Json::object(
                     {{"depth", count(config.vision.depth)},
                      {"hidden_size", count(config.vision.hidden_size)},
                      {"intermediate_size", count(config.vision.intermediate_size)},
                      {"num_heads", count(config.vision.num_heads)},
                      {"patch_size", count(config.vision.patch_size)},
                      {"num_position_embeddings", count(config.vision.num_position_embeddings)}})
               : Json());
  return json;
}

Json classes_of(const Model& model) {
  struct Sums {
    std::uint64_t tensors = 0, parameters = 0, bytes = 0;
  };
  std::map<std::pair<TensorClass, std::string>, Sums> sums;
  for (const PlannedTensor& tensor : plan_tensors(model.config)) {
    const Weight& weight = model.weight(tensor.name);
    Sums& row = sums[{tensor.tensor_class, stored_as(weight)}];
    ++row.tensors;
    row.parameters += tensor.element_count();
    row.bytes += stored_bytes(weight);
  }
  Json array = Json::array();
  for (const auto& [key, row] : sums) {
    array.push_back(Json::object({{"class", class_name(key.first)},
                                  {"stored", key.second},
                                  {"tensors", row.tensors},
                                  {"parameters", row.parameters},
                                  {"bytes", row.bytes}}));
  }
  return array;
}

Json bundle_facts(const Manifest& manifest) {
  std::vector<PalettizedTensor> worst = manifest.palettized;
  std::ranges::stable_sort(worst, std::greater<>(), &PalettizedTensor::relative_rmse);
  Json worst_json = Json::array();
  double sum = 0;
  for (const PalettizedTensor& tensor : worst) {
    sum += tensor.relative_rmse;
    if (worst_json.items().size() < kWorstTensors) {
      worst_json.push_back(Json::object({{"name", tensor.name},
                                         {"relative_rmse", tensor.relative_rmse},
                                         {"max_abs_error", tensor.max_abs_error}}));
    }
  }
  std::uint64_t payload = 0;
  for (const FileRecord& file : manifest.files) payload += file.bytes;
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? Json() : Json(text);
  };
  return Json::object(
      {{"format_version", kBundleFormatVersion},
       {"producer_version", manifest.producer_version},
       {"repository", text_or_null(manifest.repository)},
       {"revision", text_or_null(manifest.revision)},
       {"text_only", manifest.text_only},
       {"plan", manifest.plan},
       {"palette", manifest.palette},
       {"min_weights", manifest.min_weights},
       {"palettized_tensors", count(manifest.palettized.size())},
       {"mean_relative_rmse",
        manifest.palettized.empty() ? 0.0 : sum / static_cast<double>(manifest.palettized.size())},
       {"worst_tensors", std::move(worst_json)},
       {"text_programs", count(manifest.programs.size())},
       {"scales", scales_to_json(manifest.scales)},
       {"files", count(manifest.files.size())},
       {"payload_bytes", payload}});
}

}  // namespace

Json inspect_model(const Model& model) {
  Json classes = classes_of(model);
  std::uint64_t parameters = 0, bytes = 0;
  for (const Json& row : classes.items()) {
    parameters += row.find("parameters")->as_uint64().value_or(0);
    bytes += row.find("bytes")->as_uint64().value_or(0);
  }
  const bool bundle = is_bundle(model.directory);
  return Json::object({{"name", model.name},
                       {"kind", bundle ? "bundle" : "checkpoint"},
                       {"parameters", parameters},
                       {"weight_bytes", bytes},
                       {"architecture", architecture_of(model.config)},
                       {"classes", std::move(classes)},
                       {"bundle", bundle ? bundle_facts(read_manifest(model.directory)) : Json()}});
}

}  // namespace clefkit
