#include "clefkit/eval/file_checks.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "clefkit/base/error.h"
#include "clefkit/base/file_io.h"
#include "clefkit/base/sha256.h"
#include "clefkit/bundle/bundle_files.h"
#include "clefkit/bundle/bundle_program.h"
#include "clefkit/bundle/open_bundle.h"
#include "clefkit/programs/mlp_program.h"

namespace clefkit {
namespace {

namespace fs = std::filesystem;

std::string problem_of(const fs::path& bundle, const FileRecord& file,
                       const std::function<void(std::uint64_t)>& progress) {
  try {
    const fs::path path = bundle_path(bundle, file.path);
    if (const std::uint64_t bytes = fs::file_size(path); bytes != file.bytes) {
      return fmt::format("{} bytes, expected {}", bytes, file.bytes);
    }
    const std::string found = sha256_of_file(path, progress);
    if (found != file.sha256) return fmt::format("SHA-256 {}, expected {}", found, file.sha256);
    return {};
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCancelled) throw;
    return error.message();
  } catch (const fs::filesystem_error& error) {
    return error.code().message();
  }
}

bool are_ports(const std::vector<mil::Variable>& variables, const std::vector<ProgramPort>& ports) {
  return std::ranges::equal(
      variables, ports, [](const mil::Variable& variable, const ProgramPort& port) {
        return variable.name == port.name && std::ranges::equal(variable.type.shape, port.shape);
      });
}

// The first layer whose MLP has another factor in the program than in the manifest.
std::string factor_problem(const mil::Function& function, const ProgramRecord& record,
                           const MlpFactors& factors) {
  if (record.kind == "attention") return {};
  for (const std::size_t layer : record.layers) {
    const auto named = factors.find(layer);
    const double expected = named == factors.end() ? 1 : named->second;
    if (const double found = mlp_factor_of(function, layer); found != expected) {
      return fmt::format("the MLP of layer {} is scaled by {}, expected {} as the manifest says",
                         layer, found, expected);
    }
  }
  return {};
}

// What the checker finds in a program that the manifest names, and whether it has the ports and
// the factors that stand there.
std::string program_problem(const fs::path& bundle, const ProgramRecord& record,
                            const MlpFactors& factors) {
  try {
    const mil::Program program = read_bundle_program(bundle, record);
    const mil::Function& function = program.functions.at(0);
    if (!are_ports(function.inputs, record.inputs) ||
        !are_ports(mil::output_variables(function), record.outputs)) {
      return "other inputs or outputs than the manifest says";
    }
    return factor_problem(function, record, factors);
  } catch (const Error& error) {
    return error.message();
  }
}

}  // namespace

std::vector<FileCheck> check_bundle_files(
    const fs::path& bundle, const ComputeContext& context,
    const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  const Manifest manifest = read_manifest(bundle);
  std::uint64_t total = 0;
  std::set<std::string> named{kManifestFile, kFastPrecisionFile};
  std::vector<FileCheck> checks;
  for (const FileRecord& file : manifest.files) {
    total += file.bytes;
    named.insert(file.path);
    checks.push_back({file.path, {}});
  }
  std::mutex mutex;
  std::uint64_t done = 0;
  const auto advance = [&](std::uint64_t bytes) {
    if (context.cancel != nullptr) context.cancel->throw_if_cancelled();
    const std::lock_guard lock(mutex);
    done += bytes;
    if (progress) progress(done, total);
  };
  context.parallel_for(checks.size(), [&](std::size_t i, std::size_t) {
    checks[i].problem = problem_of(bundle, manifest.files[i], advance);
  });
  const MlpFactors factors = mlp_factors(manifest.scales);
  for (const ProgramRecord& program : manifest.programs) {
    if (context.cancel != nullptr) context.cancel->throw_if_cancelled();
    const auto check = std::ranges::find(checks, program.mil, &FileCheck::path);
    if (check->problem.empty()) check->problem = program_problem(bundle, program, factors);
  }
  for (const auto& entry : fs::recursive_directory_iterator(bundle)) {
    const std::string path = entry.path().lexically_relative(bundle).generic_string();
    if (!entry.is_directory() && !named.contains(path)) {
      checks.push_back({path, "the manifest does not name this file"});
    }
  }
  return checks;
}

}  // namespace clefkit
