#include "clefkit/convert/convert.h"

#include <algorithm>
#include <future>
#include <map>
#include <set>
#include <utility>

#include "clefkit/base/error.h"
#include "clefkit/base/file_io.h"
#include "clefkit/base/mapped_file.h"
#include "clefkit/base/sha256.h"
#include "clefkit/bundle/bundle_files.h"
#include "clefkit/bundle/bundle_writer.h"
#include "clefkit/convert/text_blob.h"
#include "clefkit/convert/text_programs.h"
#include "clefkit/model/checkpoint.h"
#include "clefkit/model/tensor_plan.h"
#include "clefkit/programs/text_program.h"
#include "clefkit/safetensors/safetensors_writer.h"

namespace clefkit {
namespace {

namespace fs = std::filesystem;

// Copied byte for byte when the checkpoint has them.
constexpr const char* kKeptFiles[] = {kConfigFile,
                                      kHeadConfigFile,
                                      kProcessorConfigFile,
                                      kTokenizerFile,
                                      kTokenizerConfigFile,
                                      kSkillsFile,
                                      "chat_template.jinja",
                                      "LICENSE",
                                      "NOTICE"};

constexpr char kNotice[] =
    "The weights in this directory were converted by clefkit from a release of Cloudflare's Clef\n"
    "decision models (Apache License 2.0): the text layers' linear weights were palettized to 6 "
    "bits,\n"
    "other tensors of the text layers rounded to FP16. manifest.json says which and how far they "
    "are\n"
    "from the original.\n";

// Files of the checkpoint that the bundle depends on, in the order of their names.
std::vector<fs::path> source_files(const fs::path& checkpoint) {
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator(checkpoint)) {
    if (!entry.is_regular_file()) continue;
    const std::string name = entry.path().filename().string();
    const bool is_weights =
        name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json");
    const bool is_kept = std::ranges::find(kKeptFiles, name) != std::end(kKeptFiles);
    if (is_weights || is_kept) files.insert(entry.path());
  }
  return {files.begin(), files.end()};
}

// Identifies source and options without reading 19 GB: a changed file has another size or time.
std::string fingerprint(const std::vector<fs::path>& sources, const ConvertOptions& options) {
  std::string text =
      fmt::format("{} {} {} {} {} {} {}", to_string(options.palette), options.rounds,
                  options.min_weights, static_cast<int>(options.plan), options.text_only,
                  kTextProgramRevision, options.calibration.sha256);
  for (const fs::path& path : sources) {
    text += fmt::format("\n{} {} {}", path.filename().string(), fs::file_size(path),
                        fs::last_write_time(path).time_since_epoch().count());
  }
  return sha256_hex(as_bytes(text));
}

std::vector<FileRecord> hash_sources(const std::vector<fs::path>& sources,
                                     const CancelToken& stop) {
  std::vector<FileRecord> records;
  for (const fs::path& path : sources) {
    const auto check = [&](std::uint64_t) { stop.throw_if_cancelled(); };
    records.push_back({path.filename().string(), fs::file_size(path), sha256_of_file(path, check)});
  }
  return records;
}

std::vector<PlannedProgram> plan_within_budget(const ModelConfig& config,
                                               const ConvertOptions& options) {
  std::vector<PlannedProgram> programs = plan_programs(config, options.plan);
  const std::size_t reserved = config.vision.depth + 3;
  const std::size_t budget = options.program_budget.value_or(reserved < 127 ? 127 - reserved : 0);
  if (const std::size_t needed = program_count(programs); needed > budget) {
    throw_error(ErrorCode::kInvalidArgument, "--plan",
                "this plan needs {} programs, expected at most {} (--program-budget){}", needed,
                budget, options.plan == PlanKind::kSplit ? "; --plan grouped needs fewer" : "");
  }
  return programs;
}

class Converter {
 public:
  Converter(const fs::path& directory, const fs::path& out, const ConvertOptions& options,
            const ComputeContext& context,
            const std::function<void(const ConvertProgress&)>& progress)
      : checkpoint_(open_checkpoint(directory)),
        options_(options),
        context_(context),
        progress_callback_(progress),
        sources_(source_files(directory)),
        programs_(plan_within_budget(checkpoint_.config, options)),
        writer_(out, fingerprint(sources_, options)) {
    for (const PlannedTensor& tensor : plan_tensors(checkpoint_.config)) {
      if (is_left_out(tensor)) continue;
      ++progress_.tensors_total;
      progress_.bytes_total += checkpoint_.tensor(tensor.name).bytes.size();
    }
  }

  ConvertResult run() {
    // Hashing reads everything once more, on a thread of its own, while palettes are computed.
    CancelToken stop;
    std::future<std::vector<FileRecord>> sources =
        std::async(std::launch::async, [&] { return hash_sources(sources_, stop); });
    try {
      copy_kept_files();
      calibrate();
      for (const PlannedProgram& program : programs_) add_blob(program);
      add_palette_scales();
      add_tensors(kEmbeddingsFile, TensorClass::kEmbedding, "embeddings and final norm");
      add_tensors(kHeadFile, TensorClass::kHead, "decision head");
      if (checkpoint_.config.has_vision() && !options_.text_only) {
        add_tensors(kVisionFile, TensorClass::kVision, "vision encoder");
      }
      manifest_.source_files = sources.get();
    } catch (...) {
      stop.cancel();
      throw;
    }
    return finish();
  }

 private:
  bool is_left_out(const PlannedTensor& tensor) const {
    return options_.text_only && tensor.tensor_class == TensorClass::kVision;
  }

  void tensor_done(std::uint64_t bytes) {
    ++progress_.tensors_done;
    progress_.bytes_done += bytes;
    if (progress_callback_) progress_callback_(progress_);
  }

  // Makes a file, or counts its tensors as done when an earlier run made it.
  Json add_file(const std::string& path, const std::vector<std::string>& tensors,
                const BundleWriter::WriteFile& write) {
    bool is_new = false;
    Json note = writer_.add_file(path, [&](const BundleWriter::Sink& sink) {
      is_new = true;
      return write(sink);
    });
    if (!is_new) {
      for (const std::string& name : tensors) tensor_done(checkpoint_.tensor(name).bytes.size());
    }
    return note;
  }

  void copy_kept_files() {
    bool has_notice = false;
    for (const char* name : kKeptFiles) {
      const fs::path path = checkpoint_.directory / name;
      if (!fs::exists(path)) continue;
      has_notice = has_notice || std::string_view(name) == "NOTICE";
      writer_.add_file(name, read_file(path, std::uint64_t{256} << 20));
    }
    if (!has_notice) writer_.add_file("NOTICE", std::string_view(kNotice));
  }

  void calibrate() {
    if (!options_.calibration.measure) return;
    const Json scales = writer_.remember(
        "calibration", [&] { return scales_to_json(options_.calibration.measure()); });
    manifest_.scales = scales_from_json(scales, "journal.calibration");
    mlp_factors_ = mlp_factors(manifest_.scales);
  }

  void add_blob(const PlannedProgram& program) {
    const std::string path = "programs/text/" + program.name + ".bin";
    const TextBlobOptions options{{options_.palette, options_.rounds}, options_.min_weights};
    const Json note = add_file(path, program.tensors, [&](const BundleWriter::Sink& sink) {
      return blob_contents_to_json(
          write_text_blob(context_, checkpoint_, program, path, options, sink,
                          [&](std::uint64_t bytes) { tensor_done(bytes); }));
    });
    BlobContents contents = blob_contents_from_json(note);
    add_programs(program, contents.weights, path);
    std::ranges::move(contents.weights, std::back_inserter(manifest_.weights));
    std::ranges::move(contents.palettized, std::back_inserter(manifest_.palettized));
    std::ranges::move(contents.kept, std::back_inserter(manifest_.kept));
    for (auto& tensor : contents.grid_scales) {
      grid_scales_[tensor.name] = std::move(tensor.scales);
    }
  }

  void add_programs(const PlannedProgram& planned, const std::vector<BlobWeight>& weights,
                    const std::string& blob_path) {
    const MappedFile blob(writer_.place_of(blob_path));
    for (EmittedProgram& program : emit_text_programs(checkpoint_.config.text, planned, weights,
                                                      blob.bytes(), blob_path, mlp_factors_)) {
      writer_.add_file(program.record.mil, program.text);
      manifest_.programs.push_back(std::move(program.record));
    }
  }

  void add_palette_scales() {
    if (grid_scales_.empty()) return;
    std::vector<TensorInfo> infos;
    for (const auto& [name, scales] : grid_scales_) {
      infos.push_back({name, DType::kF32, {scales.size()}});
    }
    const SafetensorsLayout layout = plan_safetensors(std::move(infos), {{"format", "pt"}});
    writer_.add_file(kPaletteScalesFile, [&](const BundleWriter::Sink& sink) {
      sink({layout.head.begin(), layout.head.end()});
      for (const TensorInfo& info : layout.tensors) {
        const std::vector<float>& scales = grid_scales_.at(info.name);
        const auto* const first = reinterpret_cast<const std::uint8_t*>(scales.data());
        sink({first, first + scales.size() * sizeof(float)});
      }
      return Json();
    });
  }

  // One safetensors file with the original bits of a class of tensors.
  void add_tensors(const char* path, TensorClass tensor_class, const char* reason) {
    std::vector<TensorInfo> infos;
    std::vector<std::string> names;
    for (const PlannedTensor& tensor : plan_tensors(checkpoint_.config)) {
      if (tensor.tensor_class != tensor_class) continue;
      infos.push_back({tensor.name, checkpoint_.tensor(tensor.name).dtype, tensor.shape});
      names.push_back(tensor.name);
      manifest_.kept.push_back({tensor.name, "bf16", reason});
    }
    const SafetensorsLayout layout = plan_safetensors(std::move(infos), {{"format", "pt"}});
    add_file(path, names, [&](const BundleWriter::Sink& sink) {
      sink({layout.head.begin(), layout.head.end()});
      for (const TensorInfo& info : layout.tensors)
        copy_tensor(checkpoint_.tensor(info.name), sink);
      return Json();
    });
  }

  void copy_tensor(const TensorView& tensor, const BundleWriter::Sink& sink) {
    constexpr std::size_t kStep = std::size_t{16} << 20;
    for (Bytes rest = tensor.bytes; !rest.empty();) {
      if (context_.cancel != nullptr) context_.cancel->throw_if_cancelled();
      const Bytes step = rest.first(std::min(kStep, rest.size()));
      if (const auto index = find_non_finite(tensor.dtype, step)) {
        throw_error(ErrorCode::kCorruptData, tensor.name,
                    "element {} is infinite or not a number, expected finite weights",
                    (tensor.bytes.size() - rest.size()) / size_bytes(tensor.dtype) + *index);
      }
      sink({step.begin(), step.end()});
      release_pages(step);
      rest = rest.subspan(step.size());
    }
    tensor_done(tensor.bytes.size());
  }

  ConvertResult finish() {
    manifest_.producer_version = CLEFKIT_VERSION;
    manifest_.repository = options_.repository;
    manifest_.revision = options_.revision;
    manifest_.text_only = options_.text_only;
    manifest_.palette = to_string(options_.palette);
    manifest_.rounds = options_.rounds;
    manifest_.min_weights = options_.min_weights;
    manifest_.plan = options_.plan == PlanKind::kGrouped ? "grouped" : "split";
    ConvertResult result{manifest_, writer_.is_resumed(), 0};
    result.manifest.files = writer_.files();
    for (const FileRecord& file : result.manifest.files) result.payload_bytes += file.bytes;
    writer_.finish(std::move(manifest_));
    return result;
  }

  Model checkpoint_;
  const ConvertOptions& options_;
  const ComputeContext& context_;
  const std::function<void(const ConvertProgress&)>& progress_callback_;
  std::vector<fs::path> sources_;
  std::vector<PlannedProgram> programs_;
  BundleWriter writer_;
  ConvertProgress progress_;
  Manifest manifest_;
  MlpFactors mlp_factors_;
  std::map<std::string, std::vector<float>> grid_scales_;  // By tensor.
};

}  // namespace

ConvertResult convert(const fs::path& checkpoint, const fs::path& out,
                      const ConvertOptions& options, const ComputeContext& context,
                      const std::function<void(const ConvertProgress&)>& progress) {
  return Converter(checkpoint, out, options, context, progress).run();
}

}  // namespace clefkit
