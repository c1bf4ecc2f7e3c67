#pragma once

// What of IOSurface and Core Foundation apple_device.mm uses, where there is neither.
#import <Foundation/Foundation.h>

#include <cstddef>
#include <cstdint>

extern "C" {
typedef struct StandInSurface* IOSurfaceRef;
typedef const void* CFDictionaryRef;
typedef std::uint32_t IOSurfaceLockOptions;
constexpr IOSurfaceLockOptions kIOSurfaceLockReadOnly = 1;

extern NSString* const kIOSurfaceWidth;
extern NSString* const kIOSurfaceHeight;
extern NSString* const kIOSurfaceBytesPerRow;
extern NSString* const kIOSurfaceBytesPerElement;
extern NSString* const kIOSurfaceAllocSize;
extern NSString* const kIOSurfacePixelFormat;

IOSurfaceRef IOSurfaceCreate(CFDictionaryRef properties);
int IOSurfaceLock(IOSurfaceRef surface, IOSurfaceLockOptions options, std::uint32_t* seed);
int IOSurfaceUnlock(IOSurfaceRef surface, IOSurfaceLockOptions options, std::uint32_t* seed);
void* IOSurfaceGetBaseAddress(IOSurfaceRef surface);
std::size_t IOSurfaceGetAllocSize(IOSurfaceRef surface);
void CFRelease(const void* object);

// For tests: of those made, the ones that are not released.
std::size_t StandInLiveSurfaces();
}
