#pragma once

#include "clefkit/base/bytes.h"

namespace clefkit::decoder {

// FFmpeg takes the end of a Matroska or WebM file that was cut off for the end of the clip. Throws
// Error(kInvalidArgument) when the file says that it is longer than it is; live recordings say
// nothing.
void check_matroska_length(Bytes file);

}  // namespace clefkit::decoder
