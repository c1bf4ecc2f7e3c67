#include <cstdlib>
#include <vector>

#include "clefkit/base/error.h"
#include "clefkit/mil/weight_blob.h"

// Whatever reads must hold after it is written again: same records, same bytes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace clefkit::mil;
  try {
    const WeightBlobReader reader({data, size}, "fuzz");
    std::vector<std::uint8_t> written;
    WeightBlobWriter writer(
        [&](clefkit::Bytes bytes) { written.insert(written.end(), bytes.begin(), bytes.end()); },
        static_cast<std::uint32_t>(reader.records().size()));
    for (const BlobRecord& record : reader.records()) {
      if (writer.add(record.type, record.data, record.element_count) != record.offset) std::abort();
      if (&reader.at(record.offset) != &record) std::abort();
    }
    writer.finish();
    if (written.size() != size) std::abort();
  } catch (const clefkit::Error& error) {
    if (error.code() != clefkit::ErrorCode::kCorruptData) std::abort();
  }
  return 0;
}
