#pragma once

#include "clefkit/media/decoder_protocol.h"

namespace clefkit::decoder {

// Tries what the sandbox forbids; throws Error with what the system answered, if the process lives.
void run_probe(Probe probe);

}  // namespace clefkit::decoder
