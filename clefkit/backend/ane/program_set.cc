#include "clefkit/backend/ane/program_set.h"

#include <algorithm>
#include <exception>
#include <future>
#include <thread>

#include "clefkit/base/error.h"

namespace clefkit::ane {
namespace {

// Smaller ones were refused on some machines (ane.md 2.6).
constexpr std::uint64_t kLeastSurfaceBytes = 65'536;
// Some systems put it behind the names of outputs.
constexpr std::string_view kOutputSuffix = "@output";

std::uint64_t largest(const std::vector<PortLayout>& layouts, std::uint64_t least) {
  for (const PortLayout& layout : layouts) least = std::max(least, layout.bytes);
  return least;
}

std::vector<Surface*> pointers(const std::vector<std::unique_ptr<Surface>>& surfaces) {
  std::vector<Surface*> list;
  for (const auto& surface : surfaces) list.push_back(surface.get());
  return list;
}

std::string_view port_name(const PortLayout& layout) {
  std::string_view name = layout.name;
  if (name.ends_with(kOutputSuffix)) name.remove_suffix(kOutputSuffix.size());
  return name;
}

}  // namespace

LoadedProgram::LoadedProgram(std::string name, std::shared_ptr<DeviceProgram> program,
                             Device& device)
    : name_(std::move(name)), call_(std::make_shared<Call>()) {
  call_->inputs.layouts = &program->inputs();
  call_->outputs.layouts = &program->outputs();
  call_->program = std::move(program);
  // Some machines want all of a kind to be of one size (ane.md 2.6); what all want is one for all.
  const std::uint64_t bytes =
      largest(*call_->outputs.layouts, largest(*call_->inputs.layouts, kLeastSurfaceBytes));
  for (Ports* const ports : {&call_->inputs, &call_->outputs}) {
    for (std::size_t i = 0; i < ports->layouts->size(); ++i) {
      ports->surfaces.push_back(device.new_surface(bytes));
      // What is never written, and only multiplied with nothing, must not be NaN.
      std::ranges::fill(ports->surfaces.back()->lock(Surface::Access::kWrite), std::uint8_t{0});
      ports->surfaces.back()->unlock(Surface::Access::kWrite);
    }
  }
}

PortMemory LoadedProgram::port(Ports& ports, std::string_view name, Surface::Access access) {
  const auto found = std::ranges::find(*ports.layouts, name, port_name);
  if (found == ports.layouts->end()) {
    throw_error(ErrorCode::kUnavailable, name_, "the device knows no port {} of this program",
                name);
  }
  const auto index = static_cast<std::size_t>(found - ports.layouts->begin());
  return PortMemory(*found, *ports.surfaces[index], access);
}

PortMemory LoadedProgram::input(std::string_view name) {
  return port(call_->inputs, name, Surface::Access::kWrite);
}

PortMemory LoadedProgram::output(std::string_view name) {
  return port(call_->outputs, name, Surface::Access::kRead);
}

void ProgramSet::require_responsive() const {
  if (!hangs_) return;
  throw Error(ErrorCode::kUnavailable, std::string(device_.name()),
              "it did not come back from an earlier call; restart this process to try again");
}

LoadedProgram& ProgramSet::get(Key key, const std::function<ProgramSource()>& source) {
  require_responsive();
  const auto found = std::ranges::find(programs_, key, &Entry::key);
  if (found != programs_.end()) {
    programs_.splice(programs_.begin(), programs_, found);
    return programs_.front().program;
  }
  while (programs_.size() >= options_.max_loaded) programs_.pop_back();
  const ProgramSource text = source();
  while (true) {
    try {
      LoadedProgram program(text.name, load(text), device_);
      programs_.push_front({key, std::move(program)});
      return programs_.front().program;
    } catch (const TooManyPrograms&) {
      // Other processes may hold the rest.
      if (programs_.empty()) throw;
      programs_.pop_back();
    }
  }
}

std::shared_ptr<DeviceProgram> ProgramSet::load(const ProgramSource& source) {
  std::shared_ptr<DeviceProgram> program = device_.open(source);
  const auto load = [&] {
    within(options_.load_deadline, source.name, [program] { program->load(); });
  };
  const bool was_compiled = program->is_compiled();
  if (!was_compiled) program->compile();
  try {
    load();
    return program;
  } catch (const TooManyPrograms&) {
    throw;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable || hangs_) throw;
  }
  try {
    std::this_thread::sleep_for(options_.retry_after);
    load();
    return program;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable || hangs_ || !was_compiled) throw;
  }
  // What the cache has may be of an older system, or damaged.
  program->purge();
  program->compile();
  load();
  return program;
}

void ProgramSet::within(std::chrono::milliseconds deadline, const std::string& program,
                        std::function<void()> call) {
  std::promise<void> promise;
  std::future<void> done = promise.get_future();
  std::thread([call = std::move(call), promise = std::move(promise)]() mutable {
    std::exception_ptr failure;
    try {
      call();
    } catch (...) {
      failure = std::current_exception();
    }
    call = nullptr;  // The program goes where the caller lets it go, not here and a little later.
    if (failure != nullptr) {
      promise.set_exception(failure);
    } else {
      promise.set_value();
    }
  }).detach();
  if (done.wait_for(deadline) != std::future_status::ready) {
    hangs_ = true;
    throw_error(ErrorCode::kUnavailable, program, "no result after {} ms: the device hangs",
                deadline.count());
  }
  done.get();
}

void ProgramSet::evaluate(LoadedProgram& program) {
  require_responsive();
  within(options_.call_deadline, program.name(), [call = program.call_] {
    call->program->evaluate(pointers(call->inputs.surfaces), pointers(call->outputs.surfaces));
  });
  for (const PortLayout& layout : *program.call_->outputs.layouts) {
    if (program.output(port_name(layout)).is_finite()) continue;
    throw_error(ErrorCode::kOverflow, program.name(),
                "{} has a value that is not finite: the request leaves FP16's range on this device",
                port_name(layout));
  }
}

}  // namespace clefkit::ane
