#pragma once

namespace clefkit {

// Files of a bundle beside the program blobs (bundle.md); tensor names in them are the release's.
inline constexpr char kEmbeddingsFile[] = "tensors/embeddings.safetensors";
inline constexpr char kHeadFile[] = "tensors/decision_head.safetensors";
inline constexpr char kVisionFile[] = "tensors/vision.safetensors";
// Per palettized tensor F32 [groups], in `grid8` bundles only.
inline constexpr char kPaletteScalesFile[] = "tensors/palette_scales.safetensors";
// Not of the bundle but about it: fast_precision.h.
inline constexpr char kFastPrecisionFile[] = "fast-precision.json";

}  // namespace clefkit
