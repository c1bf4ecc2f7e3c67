// IOSurfaces, as far as apple_device.mm uses them, in plain memory.
#include <IOSurface/IOSurfaceRef.h>

#include <atomic>
#include <vector>

struct StandInSurface {
  std::vector<std::uint8_t> bytes;
  int locks = 0;
};

static std::atomic<std::size_t> g_live{0};
std::size_t StandInLiveSurfaces() { return g_live; }

NSString* const kIOSurfaceWidth = @"IOSurfaceWidth";
NSString* const kIOSurfaceHeight = @"IOSurfaceHeight";
NSString* const kIOSurfaceBytesPerRow = @"IOSurfaceBytesPerRow";
NSString* const kIOSurfaceBytesPerElement = @"IOSurfaceBytesPerElement";
NSString* const kIOSurfaceAllocSize = @"IOSurfaceAllocSize";
NSString* const kIOSurfacePixelFormat = @"IOSurfacePixelFormat";

IOSurfaceRef IOSurfaceCreate(CFDictionaryRef properties) {
  NSDictionary* const facts = (NSDictionary*)properties;
  const auto value = [&](NSString* key) { return [[facts objectForKey:key] unsignedLongLongValue]; };
  const auto bytes = value(kIOSurfaceAllocSize);
  if (value(kIOSurfaceWidth) != bytes || value(kIOSurfaceBytesPerRow) != bytes ||
      value(kIOSurfaceHeight) != 1 || value(kIOSurfaceBytesPerElement) != 1) {
    return nullptr;
  }
  ++g_live;
  auto* const surface = new StandInSurface;
  surface->bytes.assign(bytes, 0xFF);  // Nobody promised that it comes empty.
  return surface;
}
int IOSurfaceLock(IOSurfaceRef surface, IOSurfaceLockOptions, std::uint32_t*) {
  ++surface->locks;
  return 0;
}
int IOSurfaceUnlock(IOSurfaceRef surface, IOSurfaceLockOptions, std::uint32_t*) {
  return --surface->locks < 0 ? 1 : 0;
}
void* IOSurfaceGetBaseAddress(IOSurfaceRef surface) {
  return surface->locks > 0 ? surface->bytes.data() : nullptr;
}
std::size_t IOSurfaceGetAllocSize(IOSurfaceRef surface) { return surface->bytes.size(); }
void CFRelease(const void* object) {
  --g_live;
  delete static_cast<StandInSurface*>(const_cast<void*>(object));
}
