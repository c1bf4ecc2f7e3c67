// Stands in for Apple's framework, so that the code which speaks to it runs where there is none:
// the classes and members of ane.md 2.2 in front of the fake device. It follows what others
// published of the real one (ane.md 2.3 to 2.9): compiling reads model.mil and the weights from the
// disk, compiled programs stay in a cache that all processes share, loading takes only what is
// there, and ports come in an order and with strides of its own. ANE_STANDIN_CACHE is the cache's
// directory, ANE_STANDIN_FAULTS lists what goes wrong.
#import <Foundation/Foundation.h>
#include <IOSurface/IOSurfaceRef.h>
#include <objc/runtime.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "clefkit/backend/ane/fake_device.h"
#include "clefkit/base/file_io.h"
#include "clefkit/base/sha256.h"
#include "failure_of.h"

namespace fs = std::filesystem;
using clefkit::Bytes;
using clefkit::ane::DeviceProgram;
using clefkit::ane::FakeDevice;
using clefkit::ane::PortLayout;
using clefkit::ane::Surface;

namespace {

bool has_fault(const std::string& name) {
  const char* const faults = std::getenv("ANE_STANDIN_FAULTS");
  return faults != nullptr && std::string(faults).find(name) != std::string::npos;
}

fs::path cache() {
  const char* const directory = std::getenv("ANE_STANDIN_CACHE");
  return directory == nullptr ? fs::path("/nonexistent") : fs::path(directory);
}

FakeDevice& device() {
  static FakeDevice fake({.max_programs = has_fault("full") ? 0u : 127u,
                          .pads_rows = has_fault("pads_rows"),
                          .reverses_ports = has_fault("reverses_ports"),
                          .adds_output_suffix = has_fault("adds_output_suffix"),
                          .checks_surfaces = true});
  return fake;
}

std::atomic<std::size_t> g_live_models{0};

BOOL fail(NSError** error, NSString* domain, int code, const std::string& text) {
  if (error != nullptr) {
    NSDictionary* const facts = [NSDictionary
        dictionaryWithObject:[NSString stringWithUTF8String:text.c_str()]
                      forKey:NSLocalizedDescriptionKey];
    *error = [NSError errorWithDomain:domain code:code userInfo:facts];
  }
  return NO;
}

Bytes bytes_of(NSData* data) {
  return {static_cast<const std::uint8_t*>([data bytes]), [data length]};
}

NSNumber* number(std::uint64_t value) { return [NSNumber numberWithUnsignedLongLong:value]; }

NSArray* list_of(const std::vector<PortLayout>& ports) {
  NSMutableArray* const list = [NSMutableArray array];
  for (const PortLayout& port : ports) {
    const auto size = [&](std::size_t axis) {
      return number(static_cast<std::uint64_t>(port.shape[axis]));
    };
    NSMutableDictionary* const facts = [NSMutableDictionary dictionary];
    [facts setObject:[NSString stringWithUTF8String:port.name.c_str()] forKey:@"Name"];
    [facts setObject:has_fault("float32") ? @"Float32" : @"Float16" forKey:@"Type"];
    [facts setObject:size(0) forKey:@"Batches"];
    [facts setObject:size(1) forKey:@"Channels"];
    [facts setObject:number(1) forKey:@"Depth"];
    [facts setObject:size(2) forKey:@"Height"];
    [facts setObject:size(3) forKey:@"Width"];
    [facts setObject:number(port.strides[0]) forKey:@"BatchStride"];
    [facts setObject:number(port.strides[1]) forKey:@"DepthStride"];
    [facts setObject:number(port.strides[1]) forKey:@"PlaneStride"];
    [facts setObject:number(has_fault("short_strides") ? 1u << 20 : port.strides[2])
              forKey:@"RowStride"];
    [list addObject:facts];
  }
  return list;
}

// A surface as the fake device takes them.
class Adapter final : public Surface {
 public:
  explicit Adapter(IOSurfaceRef surface) : surface_(surface) {}
  std::span<std::uint8_t> lock(Access) override {
    IOSurfaceLock(surface_, 0, nullptr);
    return {static_cast<std::uint8_t*>(IOSurfaceGetBaseAddress(surface_)),
            IOSurfaceGetAllocSize(surface_)};
  }
  void unlock(Access) override { IOSurfaceUnlock(surface_, 0, nullptr); }

 private:
  IOSurfaceRef surface_;
};

}  // namespace

@interface _ANEInMemoryModelDescriptor : NSObject {
 @public
  NSData* text_;
  NSDictionary* weights_;
}
@end

@implementation _ANEInMemoryModelDescriptor
+ (id)modelWithMILText:(NSData*)text weights:(NSDictionary*)weights optionsPlist:(NSData*)options {
  if (![text isKindOfClass:[NSData class]] || weights == nil || options != nil) return nil;
  _ANEInMemoryModelDescriptor* const made = [[[self alloc] init] autorelease];
  made->text_ = [text retain];
  made->weights_ = [weights retain];
  return made;
}
- (void)dealloc {
  [text_ release];
  [weights_ release];
  [super dealloc];
}
@end

// For tests: of the models made, the ones that are not released.
extern "C" std::size_t StandInLiveModels() { return g_live_models; }

// _ANEIOSurfaceObject, unless that is to be missing.
@interface StandInSurfaceObject : NSObject {
 @public
  IOSurfaceRef surface_;
}
@end

@implementation StandInSurfaceObject
+ (void)load {
  if (has_fault("missing_class")) return;
  objc_registerClassPair(objc_allocateClassPair(self, "_ANEIOSurfaceObject", 0));
}
+ (id)objectWithIOSurface:(IOSurfaceRef)surface {
  StandInSurfaceObject* const made = [[[self alloc] init] autorelease];
  made->surface_ = surface;
  return made;
}
@end

@interface _ANERequest : NSObject {
 @public
  NSArray* inputs_;
  NSArray* outputs_;
}
@end

@implementation _ANERequest
+ (id)requestWithInputs:(NSArray*)inputs
           inputIndices:(NSArray*)inputIndices
                outputs:(NSArray*)outputs
          outputIndices:(NSArray*)outputIndices
          weightsBuffer:(id)weights
              perfStats:(id)statistics
         procedureIndex:(NSNumber*)procedure {
  if ([inputs count] != [inputIndices count] || [outputs count] != [outputIndices count] ||
      weights != nil || statistics != nil || [procedure intValue] != 0) {
    return nil;
  }
  for (NSUInteger i = 0; i < [inputs count]; ++i) {
    if ([[inputIndices objectAtIndex:i] unsignedIntegerValue] != i) return nil;
  }
  _ANERequest* const made = [[[self alloc] init] autorelease];
  made->inputs_ = [inputs retain];
  made->outputs_ = [outputs retain];
  return made;
}
- (void)dealloc {
  [inputs_ release];
  [outputs_ release];
  [super dealloc];
}
@end

@interface _ANEDeviceInfo : NSObject
@end

@implementation _ANEDeviceInfo
+ (BOOL)hasANE {
  return has_fault("no_engine") ? NO : YES;
}
+ (unsigned int)numANECores {
  return 16;
}
+ (NSString*)aneArchitectureType {
  return @"h16g";
}
@end

@interface _ANEInMemoryModel : NSObject {
  _ANEInMemoryModelDescriptor* descriptor_;
  std::unique_ptr<DeviceProgram> program_;
  Bytes weights_;
}
@end

@implementation _ANEInMemoryModel
+ (id)inMemoryModelWithDescriptor:(id)descriptor {
  if (![descriptor isKindOfClass:[_ANEInMemoryModelDescriptor class]]) return nil;
  _ANEInMemoryModel* const made = [[[self alloc] init] autorelease];
  ++g_live_models;
  made->descriptor_ = [descriptor retain];
  for (NSString* const key in made->descriptor_->weights_) {
    made->weights_ = bytes_of(
        [[made->descriptor_->weights_ objectForKey:key] objectForKey:@"data"]);
  }
  const Bytes text = bytes_of(made->descriptor_->text_);
  made->program_ = device().open(
      {.name = "program", .mil = std::string(clefkit::as_text(text)), .weights = made->weights_});
  return made;
}
- (void)dealloc {
  --g_live_models;
  program_.reset();
  [descriptor_ release];
  [super dealloc];
}
- (std::string)identifier {
  return clefkit::sha256_hex(bytes_of(descriptor_->text_)) + "_" + clefkit::sha256_hex(weights_);
}
- (NSString*)hexStringIdentifier {
  return [NSString stringWithUTF8String:[self identifier].c_str()];
}
- (NSString*)localModelPath {
  return [NSString stringWithUTF8String:(cache() / "work" / [self identifier]).c_str()];
}
- (BOOL)compiledModelExists {
  if (has_fault("raises")) [NSException raise:@"NSGenericException" format:@"no connection"];
  return fs::exists(cache() / [self identifier]);
}
- (void)purgeCompiledModel {
  fs::remove(cache() / [self identifier]);
}
- (BOOL)compileWithQoS:(unsigned int)qos options:(NSDictionary*)options error:(NSError**)error {
  NSString* const domain = @"com.apple.appleneuralengine.compiler";
  if (qos != 21 || [options count] != 0) return fail(error, domain, 1, "options");
  if (has_fault("compiler_crashes")) std::abort();
  while (has_fault("compiler_hangs")) ::pause();
  const fs::path directory([[self localModelPath] UTF8String]);
  std::string text, weights;
  const auto unreadable = failure_of([&] {
    text = clefkit::read_file(directory / "model.mil", 1 << 30);
    if (weights_.empty()) return;
    weights = clefkit::read_file(directory / "weights" / "weight.bin", 1 << 30);
  });
  if (unreadable || text != clefkit::as_text(bytes_of(descriptor_->text_)) ||
      weights != clefkit::as_text(weights_)) {
    return fail(error, domain, 1, "ANECCompile() FAILED: CompilationFailure");
  }
  if (failure_of([&] { program_->compile(); })) {
    return fail(error, domain, 1, "ANECCompile() FAILED: InvalidMILProgram");
  }
  std::ofstream(cache() / [self identifier]) << "compiled";
  return YES;
}
- (BOOL)loadWithQoS:(unsigned int)qos options:(NSDictionary*)options error:(NSError**)error {
  NSString* const domain = @"com.apple.appleneuralengine";
  if (qos != 21 || [options count] != 0) return fail(error, domain, 1, "options");
  if (!fs::exists(cache() / [self identifier])) return fail(error, domain, 2, "not in the cache");
  const auto failure = failure_of([&] {
    program_->compile();  // What the cache would have.
    program_->load();
  });
  return failure ? fail(error, domain, 8, *failure) : YES;
}
- (BOOL)unloadWithQoS:(unsigned int)qos error:(NSError**)error {
  return qos == 21 ? YES : fail(error, @"com.apple.appleneuralengine", 1, "options");
}
- (NSDictionary*)modelAttributes {
  NSMutableDictionary* const procedure = [NSMutableDictionary dictionary];
  [procedure setObject:list_of(program_->inputs()) forKey:@"LiveInputList"];
  if (!has_fault("no_outputs")) {
    [procedure setObject:list_of(program_->outputs()) forKey:@"LiveOutputList"];
  }
  return [NSDictionary dictionaryWithObject:[NSArray arrayWithObject:procedure]
                                     forKey:@"NetworkStatusList"];
}
- (BOOL)evaluateWithQoS:(unsigned int)qos
                options:(NSDictionary*)options
                request:(id)request
                  error:(NSError**)error {
  NSString* const domain = @"com.apple.appleneuralengine";
  if (qos != 21 || [options count] != 0 || ![request isKindOfClass:[_ANERequest class]]) {
    return fail(error, domain, 8, "no request");
  }
  std::vector<std::unique_ptr<Adapter>> adapters;
  const auto surfaces_of = [&](NSArray* objects) {
    std::vector<Surface*> surfaces;
    for (StandInSurfaceObject* const object in objects) {
      adapters.push_back(std::make_unique<Adapter>(object->surface_));
      surfaces.push_back(adapters.back().get());
    }
    return surfaces;
  };
  const auto* const asked = static_cast<_ANERequest*>(request);
  const std::vector<Surface*> inputs = surfaces_of(asked->inputs_);
  const std::vector<Surface*> outputs = surfaces_of(asked->outputs_);
  const auto failure = failure_of([&] { program_->evaluate(inputs, outputs); });
  return failure ? fail(error, domain, 8, *failure) : YES;
}
@end
