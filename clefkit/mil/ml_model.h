#pragma once

#include <string>

#include "clefkit/mil/program.h"

namespace clefkit::mil {

// What a model says about itself to people. Empty ones are left out.
struct MlModelInfo {
  std::string description{}, version{}, license{};
};

// A program as the Core ML model `model.mlmodel` of an ML Package: protobuf, with inputs and
// outputs described as multiarrays. The same program gives the same bytes. Values of the weight
// file stay there: the package has one, kWeightPath, whatever path they give.
//
// The program is one that check_program takes. Throws Error(kUnsupported) for what an ML Package
// cannot say: not exactly one function `main`, an opset it has no name for, an input or output that
// is no tensor of fp16, fp32, int8 or int32, an output that no statement defines, values of more
// than one weight file.
std::string to_ml_model(const Program& program, const MlModelInfo& info);

// Whether any value lies in the weight file.
bool has_weights(const Program& program);

}  // namespace clefkit::mil
