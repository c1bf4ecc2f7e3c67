// The only file that speaks to Apple's private framework, AppleNeuralEngine (ane.md 2.1 to 2.9).
// Without ARC and without literals, so that gobjc++ compiles it too.
#include "clefkit/backend/ane/apple/apple_device.h"

#import <Foundation/Foundation.h>
#include <IOSurface/IOSurfaceRef.h>
#include <dlfcn.h>
#include <objc/runtime.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "clefkit/backend/ane/work_directory.h"
#include "clefkit/base/companion_program.h"
#include "clefkit/base/file_io.h"

// What the framework's classes and objects understand. Classes are objects too: what a class
// understands is declared as an instance's.
@protocol ClefkitANEDescriptorClass
- (id)modelWithMILText:(NSData*)text weights:(NSDictionary*)weights optionsPlist:(NSData*)options;
@end

@protocol ClefkitANEModelClass
- (id)inMemoryModelWithDescriptor:(id)descriptor;
@end

@protocol ClefkitANEModel
- (NSString*)hexStringIdentifier;
- (NSString*)localModelPath;
- (BOOL)compiledModelExists;
- (void)purgeCompiledModel;
- (BOOL)compileWithQoS:(unsigned int)qos options:(NSDictionary*)options error:(NSError**)error;
- (BOOL)loadWithQoS:(unsigned int)qos options:(NSDictionary*)options error:(NSError**)error;
- (BOOL)unloadWithQoS:(unsigned int)qos error:(NSError**)error;
- (BOOL)evaluateWithQoS:(unsigned int)qos
                options:(NSDictionary*)options
                request:(id)request
                  error:(NSError**)error;
- (NSDictionary*)modelAttributes;
@end

@protocol ClefkitANERequestClass
- (id)requestWithInputs:(NSArray*)inputs
           inputIndices:(NSArray*)inputIndices
                outputs:(NSArray*)outputs
          outputIndices:(NSArray*)outputIndices
          weightsBuffer:(id)weights
              perfStats:(id)statistics
         procedureIndex:(NSNumber*)procedure;
@end

@protocol ClefkitANESurfaceClass
- (id)objectWithIOSurface:(IOSurfaceRef)surface;
@end

@protocol ClefkitANEDeviceInfoClass
- (BOOL)hasANE;
- (unsigned int)numANECores;
- (NSString*)aneArchitectureType;
@end

namespace clefkit::ane {
namespace {

namespace fs = std::filesystem;

constexpr unsigned int kQos = 21;  // What nearly everybody passes.
// Of a port whose sizes the framework does not tell.
constexpr std::uint64_t kUntoldPortBytes = 65'536;
constexpr std::string_view kModelPath = "@model_path/";
constexpr char kCompilerName[] = "clefkit-ane-compiler";
constexpr char kCompilerVariable[] = "CLEFKIT_ANE_COMPILER";
constexpr int kRefused = 1;  // The compiler's exit code for a program that it does not take.

// When the last compilation of this process failed; none does before some time has passed since.
class CompilerPause {
 public:
  using Clock = std::chrono::steady_clock;

  void failed() {
    const std::lock_guard lock(mutex_);
    failed_at_ = Clock::now();
  }
  void wait(std::chrono::milliseconds pause) {
    std::optional<Clock::time_point> failed_at;
    {
      const std::lock_guard lock(mutex_);
      failed_at = failed_at_;
    }
    if (failed_at) std::this_thread::sleep_until(*failed_at + pause);
  }

 private:
  std::mutex mutex_;
  std::optional<Clock::time_point> failed_at_;
};
CompilerPause g_compiler_pause;

// Kills a process that has not ended in time.
class Watchdog {
 public:
  Watchdog(pid_t process, std::chrono::milliseconds deadline)
      : thread_([this, process, deadline] {
          std::unique_lock lock(mutex_);
          has_fired_ = !is_over_.wait_for(lock, deadline, [this] { return has_ended_; });
          if (has_fired_) ::kill(process, SIGKILL);
        }) {}
  ~Watchdog() { stop(); }

  // The process has ended. Returns whether it had to be killed.
  bool stop() {
    {
      const std::lock_guard lock(mutex_);
      has_ended_ = true;
    }
    is_over_.notify_all();
    if (thread_.joinable()) thread_.join();
    return has_fired_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable is_over_;
  bool has_ended_ = false, has_fired_ = false;
  std::thread thread_;
};

// Objects that nobody keeps live as long as one of these.
class Pool {
 public:
  Pool() : pool_([[NSAutoreleasePool alloc] init]) {}
  ~Pool() { [pool_ drain]; }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

 private:
  NSAutoreleasePool* pool_;
};

// Keeps an object.
class Kept {
 public:
  Kept() = default;
  explicit Kept(id object) : object_([object retain]) {}
  Kept(Kept&& other) noexcept : object_(std::exchange(other.object_, nil)) {}
  Kept& operator=(Kept&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Kept() { [object_ release]; }
  id get() const { return object_; }

 private:
  id object_ = nil;
};

NSString* string_of(std::string_view text) {
  return [[[NSString alloc] initWithBytes:text.data()
                                   length:text.size()
                                 encoding:NSUTF8StringEncoding] autorelease];
}
std::string text_of(NSString* string) {
  const char* const text = string == nil ? nullptr : [string UTF8String];
  return text == nullptr ? std::string() : std::string(text);
}

// The domain, code and text of an error and of those beneath it.
std::string text_of(NSError* error) {
  if (error == nil) return "no reason given";
  std::string text;
  constexpr int kMostBeneath = 4;
  for (int depth = 0; error != nil && depth < kMostBeneath; ++depth) {
    if (!text.empty()) text += "; beneath: ";
    text += fmt::format("{} code {:#x}: {}", text_of([error domain]),
                        static_cast<unsigned long>([error code]),
                        text_of([error localizedDescription]));
    error = [[error userInfo] objectForKey:NSUnderlyingErrorKey];
  }
  return text;
}

// Of this process as it is now; Foundation may know only how it began.
NSDictionary* environment() {
  NSMutableDictionary* const variables = [NSMutableDictionary dictionary];
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    NSString* const value = equals == text.npos ? nil : string_of(text.substr(equals + 1));
    if (value != nil) [variables setObject:value forKey:string_of(text.substr(0, equals))];
  }
  return variables;
}

// Runs what may raise one of the framework's own exceptions.
template <typename Function>
void guarded(const std::string& name, const Function& function) {
  std::optional<std::string> raised;
  @try {
    function();
  } @catch (NSException* exception) {
    raised = fmt::format("exception {}: {}", text_of([exception name]),
                         text_of([exception reason]));
  }
  if (raised) throw Error(ErrorCode::kUnavailable, name, *raised);
}

struct Member {
  const char* class_name;
  char kind;  // '+' or '-'.
  const char* selector;
};
constexpr std::array kMembers{
    Member{"_ANEInMemoryModelDescriptor", '+', "modelWithMILText:weights:optionsPlist:"},
    Member{"_ANEInMemoryModel", '+', "inMemoryModelWithDescriptor:"},
    Member{"_ANEInMemoryModel", '-', "hexStringIdentifier"},
    Member{"_ANEInMemoryModel", '-', "localModelPath"},
    Member{"_ANEInMemoryModel", '-', "compiledModelExists"},
    Member{"_ANEInMemoryModel", '-', "purgeCompiledModel"},
    Member{"_ANEInMemoryModel", '-', "compileWithQoS:options:error:"},
    Member{"_ANEInMemoryModel", '-', "loadWithQoS:options:error:"},
    Member{"_ANEInMemoryModel", '-', "unloadWithQoS:error:"},
    Member{"_ANEInMemoryModel", '-', "evaluateWithQoS:options:request:error:"},
    Member{"_ANEInMemoryModel", '-', "modelAttributes"},
    Member{"_ANERequest", '+',
           "requestWithInputs:inputIndices:outputs:outputIndices:weightsBuffer:perfStats:"
           "procedureIndex:"},
    Member{"_ANEIOSurfaceObject", '+', "objectWithIOSurface:"},
};

bool has_member(const Member& member) {
  const Class owner = objc_getClass(member.class_name);
  if (owner == Nil) return false;
  const SEL selector = sel_registerName(member.selector);
  return (member.kind == '+' ? class_getClassMethod(owner, selector)
                             : class_getInstanceMethod(owner, selector)) != nullptr;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

id class_named(const char* name) { return static_cast<id>(objc_getClass(name)); }

// Of a class that is not needed.
void read_device_info(AppleFacts& facts) {
  constexpr char kClass[] = "_ANEDeviceInfo";
  const auto info = static_cast<id<ClefkitANEDeviceInfoClass>>(class_named(kClass));
  if (has_member({kClass, '+', "aneArchitectureType"})) {
    facts.chip = text_of([info aneArchitectureType]);
  }
  if (has_member({kClass, '+', "numANECores"})) facts.cores = [info numANECores];
  if (has_member({kClass, '+', "hasANE"}) && ![info hasANE]) {
    facts.problem = "the system says that this machine has no Neural Engine";
  }
}

// The text and the weights' bytes stay the caller's, and must outlive the model.
Kept new_model(const ProgramSource& source) {
  Kept model;
  guarded(source.name, [&] {
    // The framework reads neither after the pool; it has no way to write them.
    NSData* const text = [NSData dataWithBytes:source.mil.data() length:source.mil.size()];
    NSMutableDictionary* const weights = [NSMutableDictionary dictionary];
    if (!source.weights.empty()) {
      NSData* const bytes =
          [NSData dataWithBytesNoCopy:const_cast<std::uint8_t*>(source.weights.data())
                               length:source.weights.size()
                         freeWhenDone:NO];
      NSDictionary* const file =
          [NSDictionary dictionaryWithObjectsAndKeys:[NSNumber numberWithInt:0], @"offset", bytes,
                                                     @"data", nil];
      [weights setObject:file forKey:string_of(mil::kWeightPath)];
    }
    const auto descriptors = static_cast<id<ClefkitANEDescriptorClass>>(
        class_named("_ANEInMemoryModelDescriptor"));
    const id descriptor = [descriptors modelWithMILText:text weights:weights optionsPlist:nil];
    if (descriptor == nil) return;
    const auto models =
        static_cast<id<ClefkitANEModelClass>>(class_named("_ANEInMemoryModel"));
    model = Kept([models inMemoryModelWithDescriptor:descriptor]);
  });
  if (model.get() == nil) {
    throw Error(ErrorCode::kUnavailable, source.name, "the framework makes no model of it");
  }
  return model;
}

std::uint64_t number_of(NSDictionary* port, NSString* key, std::uint64_t otherwise) {
  const id value = [port objectForKey:key];
  if (![value isKindOfClass:[NSNumber class]]) return otherwise;
  const long long number = [value longLongValue];
  return number < 0 ? otherwise : static_cast<std::uint64_t>(number);
}

PortLayout layout_of(NSDictionary* port, const std::string& program) {
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::kUnavailable, program, "the framework's port list: " + what);
  };
  if (![port isKindOfClass:[NSDictionary class]]) fail("no dictionary where a port should be");
  PortLayout layout;
  for (NSString* const key : {@"Name", @"Symbol"}) {
    const id name = [port objectForKey:key];
    if (layout.name.empty() && [name isKindOfClass:[NSString class]]) layout.name = text_of(static_cast<NSString*>(name));
  }
  if (layout.name.empty()) fail("a port without a name");
  const id type = [port objectForKey:@"Type"];
  if ([type isKindOfClass:[NSString class]] && text_of(static_cast<NSString*>(type)) != "Float16") {
    fail(fmt::format("{} holds {}, expected Float16", layout.name,
                     text_of(static_cast<NSString*>(type))));
  }
  if (number_of(port, @"Depth", 1) != 1) fail(layout.name + " has a depth, expected none");
  std::uint64_t last = 0;  // Where the last element lies.
  const auto axis = [&](std::size_t index, NSString* size_key, NSString* stride_key,
                        std::uint64_t dense_stride) {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 32;
    const std::uint64_t size = number_of(port, size_key, 1);
    const std::uint64_t stride =
        stride_key == nil ? sizeof(std::uint16_t) : number_of(port, stride_key, dense_stride);
    if (size == 0 || size > kMost || stride > kMost) fail(layout.name + " has impossible sizes");
    layout.shape[index] = static_cast<std::int64_t>(size);
    layout.strides[index] = stride;
    last += (size - 1) * stride;
    return stride * size;
  };
  layout.shape.assign(4, 1);
  const std::uint64_t row = axis(3, @"Width", nil, 0);
  const std::uint64_t plane = axis(2, @"Height", @"RowStride", row);
  const std::uint64_t batch = axis(1, @"Channels", @"PlaneStride", plane);
  const std::uint64_t all = axis(0, @"Batches", @"BatchStride", batch);
  layout.bytes = [port objectForKey:@"BatchStride"] == nil ? std::max(kUntoldPortBytes, all) : all;
  if (last + sizeof(std::uint16_t) > layout.bytes) {
    fail(fmt::format("{} has its last element at byte {} of {}", layout.name, last, layout.bytes));
  }
  return layout;
}

std::vector<PortLayout> layouts_of(NSDictionary* attributes, NSString* list,
                                   const std::string& program) {
  const id procedures = [attributes objectForKey:@"NetworkStatusList"];
  id ports = nil;
  if ([procedures isKindOfClass:[NSArray class]] && [procedures count] > 0 &&
      [[procedures objectAtIndex:0] isKindOfClass:[NSDictionary class]]) {
    ports = [[procedures objectAtIndex:0] objectForKey:list];
  }
  if (![ports isKindOfClass:[NSArray class]]) {
    throw_error(ErrorCode::kUnavailable, program, "the framework lists no ports under {}",
                text_of(list));
  }
  std::vector<PortLayout> layouts;
  for (NSUInteger i = 0; i < [ports count]; ++i) {
    layouts.push_back(layout_of([ports objectAtIndex:i], program));
  }
  return layouts;
}

class AppleSurface final : public Surface {
 public:
  explicit AppleSurface(std::uint64_t bytes) {
    const Pool pool;
    NSNumber* const size = [NSNumber numberWithUnsignedLongLong:bytes];
    NSNumber* const one = [NSNumber numberWithInt:1];
    NSDictionary* const properties = [NSDictionary
        dictionaryWithObjectsAndKeys:size, (NSString*)kIOSurfaceWidth, size,
                                     (NSString*)kIOSurfaceBytesPerRow, size,
                                     (NSString*)kIOSurfaceAllocSize, one,
                                     (NSString*)kIOSurfaceHeight, one,
                                     (NSString*)kIOSurfaceBytesPerElement,
                                     [NSNumber numberWithInt:0], (NSString*)kIOSurfacePixelFormat,
                                     nil];
    surface_ = IOSurfaceCreate((CFDictionaryRef)properties);
    if (surface_ == nullptr) {
      throw_error(ErrorCode::kUnavailable, "ane", "the system gives no surface of {} bytes", bytes);
    }
    const auto objects = static_cast<id<ClefkitANESurfaceClass>>(class_named("_ANEIOSurfaceObject"));
    object_ = Kept([objects objectWithIOSurface:surface_]);
  }
  ~AppleSurface() override { CFRelease(surface_); }

  std::span<std::uint8_t> lock(Access access) override {
    if (IOSurfaceLock(surface_, options_of(access), nullptr) != 0) {
      throw Error(ErrorCode::kUnavailable, "ane", "a surface cannot be locked");
    }
    return {static_cast<std::uint8_t*>(IOSurfaceGetBaseAddress(surface_)),
            IOSurfaceGetAllocSize(surface_)};
  }
  void unlock(Access access) override { IOSurfaceUnlock(surface_, options_of(access), nullptr); }
  id object() const { return object_.get(); }

 private:
  static IOSurfaceLockOptions options_of(Access access) {
    return access == Access::kRead ? kIOSurfaceLockReadOnly : 0;
  }

  IOSurfaceRef surface_ = nullptr;
  Kept object_;
};

class AppleProgram final : public DeviceProgram {
 public:
  AppleProgram(const ProgramSource& source, const AppleOptions& options)
      : source_(source), options_(options), model_(new_model(source)) {
    const Pool pool;
    guarded(source_.name, [&] {
      fs::path directory = text_of([model() localModelPath]);
      if (directory.empty()) {
        directory = fs::path(text_of(NSTemporaryDirectory())) / text_of([model() hexStringIdentifier]);
      }
      directory_.emplace(std::move(directory));
    });
  }
  ~AppleProgram() override {
    const Pool pool;
    @try {
      if (is_loaded_) [model() unloadWithQoS:kQos error:nullptr];
    } @catch (NSException*) {
      // It is gone either way.
    }
  }

  const fs::path& directory() const { return directory_->path(); }

  bool is_compiled() const override {
    const Pool pool;
    bool exists = false;
    guarded(source_.name, [&] { exists = [model() compiledModelExists]; });
    return exists;
  }

  // The compiler reads from the disk.
  void compile() override {
    const Pool pool;
    write_files();
    g_compiler_pause.wait(options_.pause_after_failure);
    const std::string program =
        find_companion_program(kCompilerName, kCompilerVariable, options_.compiler).string();
    std::string said;
    int status = 0;
    bool was_killed = false, took_too_long = false;
    guarded(source_.name, [&] {
      NSTask* const task = [[[NSTask alloc] init] autorelease];
      NSPipe* const pipe = [NSPipe pipe];
      [task setLaunchPath:string_of(program)];
      [task setArguments:[NSArray arrayWithObjects:string_of(text_file().string()),
                                                   string_of(source_.weights.empty()
                                                                 ? std::string()
                                                                 : weight_file().string()),
                                                   string_of(options_.framework), nil]];
      [task setEnvironment:environment()];
      [task setStandardOutput:pipe];
      [task setStandardInput:[NSFileHandle fileHandleWithNullDevice]];
      [task launch];
      Watchdog watchdog([task processIdentifier], options_.compile_deadline);
      NSData* const output = [[pipe fileHandleForReading] readDataToEndOfFile];
      said.assign(static_cast<const char*>([output bytes]), [output length]);
      [task waitUntilExit];
      took_too_long = watchdog.stop();
      status = [task terminationStatus];
      was_killed = [task terminationReason] == NSTaskTerminationReasonUncaughtSignal;
    });
    if (status == 0 && !was_killed) return;
    g_compiler_pause.failed();
    while (said.ends_with('\n')) said.pop_back();
    if (took_too_long) {
      throw_error(ErrorCode::kUnavailable, source_.name,
                  "the compiler has not ended within {} ms, and was killed",
                  options_.compile_deadline.count());
    }
    if (was_killed) {
      throw_error(ErrorCode::kUnavailable, source_.name, "the compiler's process ended by signal {}",
                  status);
    }
    throw Error(status == kRefused ? ErrorCode::kUnsupported : ErrorCode::kUnavailable,
                source_.name, said.empty() ? fmt::format("the compiler ended with {}", status) : said);
  }

  void compile_here() {
    const Pool pool;
    NSError* error = nil;
    bool is_done = false;
    guarded(source_.name, [&] {
      is_done = [model() compileWithQoS:kQos options:[NSDictionary dictionary] error:&error];
    });
    if (is_done) return;
    const std::string text = text_of(error);
    const bool is_refused = text.find("InvalidMILProgram") != text.npos;
    throw Error(is_refused ? ErrorCode::kUnsupported : ErrorCode::kUnavailable, source_.name, text);
  }

  void purge() override {
    const Pool pool;
    guarded(source_.name, [&] { [model() purgeCompiledModel]; });
  }

  void load() override {
    const Pool pool;
    NSError* error = nil;
    guarded(source_.name, [&] {
      is_loaded_ = [model() loadWithQoS:kQos options:[NSDictionary dictionary] error:&error];
    });
    if (!is_loaded_) {
      const std::string text = text_of(error);
      const bool is_full = text.find("0x50004") != text.npos ||
                           text.find("must re-compile") != text.npos;
      if (is_full) throw TooManyPrograms(source_.name, text);
      throw Error(ErrorCode::kUnavailable, source_.name, text);
    }
    NSDictionary* attributes = nil;
    guarded(source_.name, [&] { attributes = [model() modelAttributes]; });
    inputs_ = layouts_of(attributes, @"LiveInputList", source_.name);
    outputs_ = layouts_of(attributes, @"LiveOutputList", source_.name);
  }
  const std::vector<PortLayout>& inputs() const override { return inputs_; }
  const std::vector<PortLayout>& outputs() const override { return outputs_; }

  void evaluate(std::span<Surface* const> inputs, std::span<Surface* const> outputs) override {
    const Pool pool;
    NSError* error = nil;
    bool is_done = false;
    guarded(source_.name, [&] {
      const auto requests = static_cast<id<ClefkitANERequestClass>>(class_named("_ANERequest"));
      const id request = [requests requestWithInputs:objects_of(inputs)
                                        inputIndices:indices_of(inputs)
                                             outputs:objects_of(outputs)
                                       outputIndices:indices_of(outputs)
                                       weightsBuffer:nil
                                           perfStats:nil
                                      procedureIndex:[NSNumber numberWithInt:0]];
      is_done = [model() evaluateWithQoS:kQos
                                 options:[NSDictionary dictionary]
                                 request:request
                                   error:&error];
    });
    if (!is_done) throw Error(ErrorCode::kUnavailable, source_.name, text_of(error));
  }

 private:
  id<ClefkitANEModel> model() const { return static_cast<id<ClefkitANEModel>>(model_.get()); }

  static NSArray* objects_of(std::span<Surface* const> surfaces) {
    NSMutableArray* const objects = [NSMutableArray array];
    for (Surface* const surface : surfaces) {
      [objects addObject:static_cast<AppleSurface*>(surface)->object()];
    }
    return objects;
  }
  static NSArray* indices_of(std::span<Surface* const> surfaces) {
    NSMutableArray* const indices = [NSMutableArray array];
    for (std::size_t i = 0; i < surfaces.size(); ++i) {
      [indices addObject:[NSNumber numberWithUnsignedLong:i]];
    }
    return indices;
  }

  fs::path text_file() const { return directory() / "model.mil"; }
  fs::path weight_file() const {
    return directory() / std::string_view(mil::kWeightPath).substr(kModelPath.size());
  }
  void write_files() {
    directory_->make();
    std::error_code error;
    fs::create_directories(weight_file().parent_path(), error);
    if (error) {
      throw_error(ErrorCode::kUnavailable, directory().string(), "{}, expected a directory",
                  error.message());
    }
    write_file(text_file(), source_.mil);
    if (source_.weights.empty()) return;
    // A second name costs no gigabytes where the file system is the same.
    fs::remove(weight_file(), error);
    if (!source_.weights_file.empty()) {
      fs::create_hard_link(source_.weights_file, weight_file(), error);
      if (!error) return;
    }
    AtomicFile file(weight_file());
    file.write(source_.weights);
    file.commit();
  }

  const ProgramSource source_;
  const AppleOptions options_;
  const Kept model_;
  std::optional<WorkDirectory> directory_;
  bool is_loaded_ = false;
  std::vector<PortLayout> inputs_, outputs_;
};

class AppleDevice final : public Device {
 public:
  explicit AppleDevice(AppleOptions options) : options_(std::move(options)) {}

  std::string_view name() const override { return "ane"; }
  std::unique_ptr<DeviceProgram> open(const ProgramSource& source) override {
    const Pool pool;
    auto program = std::make_unique<AppleProgram>(source, options_);
    std::call_once(has_looked_, [&] { remove_abandoned_work(program->directory().parent_path()); });
    return program;
  }
  std::unique_ptr<Surface> new_surface(std::uint64_t bytes) override {
    return std::make_unique<AppleSurface>(bytes);
  }

 private:
  const AppleOptions options_;
  std::once_flag has_looked_;  // For what processes that were killed have left.
};

void require_device(const AppleOptions& options) {
  const std::string problem = apple_facts(options).problem;
  if (!problem.empty()) throw Error(ErrorCode::kUnavailable, "ane", problem);
}

}  // namespace

AppleFacts apple_facts(const AppleOptions& options) {
  const Pool pool;
  AppleFacts facts;
  facts.system = text_of([[NSProcessInfo processInfo] operatingSystemVersionString]);
  if (::dlopen(options.framework.c_str(), RTLD_NOW) == nullptr) {
    const char* const reason = ::dlerror();
    facts.problem = fmt::format("the framework cannot be opened: {}",
                                reason == nullptr ? "no reason given" : reason);
    return facts;
  }
  for (const Member& member : kMembers) {
    if (has_member(member)) continue;
    facts.missing.push_back(fmt::format("{}[{} {}]", member.kind, member.class_name, member.selector));
  }
  if (!facts.missing.empty()) {
    facts.problem = "this system's framework lacks " + joined(facts.missing);
    return facts;
  }
  guarded("ane", [&] { read_device_info(facts); });
  return facts;
}

std::unique_ptr<Device> open_apple_device(const AppleOptions& options) {
  require_device(options);
  return std::make_unique<AppleDevice>(options);
}

void compile_in_this_process(const ProgramSource& source, const AppleOptions& options) {
  const Pool pool;
  require_device(options);
  AppleProgram(source, options).compile_here();
}

}  // namespace clefkit::ane
