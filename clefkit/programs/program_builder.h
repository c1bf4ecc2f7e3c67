#pragma once

#include <list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clefkit/mil/operations.h"
#include "clefkit/mil/program.h"
#include "clefkit/model/blob_weight.h"
#include "clefkit/programs/spellings.h"

namespace clefkit {

// Puts a program of one function together. Results are known by their names, which are made unique;
// their types follow from the operations. Everything is [1, channels, 1, tokens] unless said
// otherwise. A call that makes no sense is a defect of the caller: Error(kInternal).
//
// Statements stand in the order of the calls. No two of them belong among the arguments of one
// call: there each compiler has an order of its own, and a program must be the same bytes
// everywhere.
class ProgramBuilder {
 public:
  using Name = std::string;

  // BLOBFILE will name this path for every weight.
  explicit ProgramBuilder(std::string weight_path, const Spellings& spellings = {});

  const mil::ValueType& type(const Name& name) const;

  Name input(const std::string& name, const mil::Shape& shape);
  // Makes a result of one statement an output, which is then called `name` everywhere.
  void output(const Name& result, const std::string& name);

  Name add(std::string_view op, std::vector<std::pair<std::string, mil::Argument>> arguments,
           std::string_view hint);
  Name binary(std::string_view op, const Name& x, const mil::Argument& y, std::string_view hint);
  Name unary(std::string_view op, const Name& x, std::string_view hint);

  // A value in the text; the same value is written once.
  Name constant(const mil::Value& value, std::string_view hint);
  // FP16, rounded.
  Name scalar(double value, std::string_view hint);
  // A weight of the blob file in a shape of as many elements: [O, I] as [O, I, 1, 1].
  Name weight(const BlobWeight& weight, const mil::Shape& shape);

  // A linear layer as a 1x1 convolution: [1, in, 1, S] to [1, out, 1, S].
  Name linear(const Name& x, const BlobWeight& weight, std::string_view hint);
  // A convolution with a weight that is already there: a step of 1, no padding.
  Name conv(const Name& x, const Name& weight, std::string_view hint, std::int64_t groups = 1);
  Name silu(const Name& x, std::string_view hint);
  // 1 / (1 + exp(-x)), with exp kept from overflowing: at least 4.5e-5.
  Name sigmoid(const Name& x, std::string_view hint);
  // log(1 + exp(x)) = relu(x) + log(1 + t) with t = exp(-|x|), the logarithm as a polynomial of t
  // that is exact at both ends and off by at most 2e-4 (ane.md 5.3).
  Name softplus(const Name& x, std::string_view hint);
  // GELU in the approximation by tanh, x/2 · (1 + tanh u) with u = √(2/π) (x + 0.044715 x³), as
  // x / (1 + exp(-2u)): where tanh is nearly -1, 1 + tanh would have lost its bits. At least -7e-5
  // off below -4.
  Name gelu_tanh(const Name& x, std::string_view hint);
  // 1 / sqrt(x), for x above 0.
  Name inverse_root(const Name& x, std::string_view hint);
  // Over the last axis.
  Name softmax(const Name& x, std::string_view hint);
  // Over the channels, [N, C, 1, S] to [N, 1, 1, S]: the largest; the mean of numbers whose mean
  // magnitude is at most `largest`; `weight` times the sum. Shares of 1/C would be subnormal
  // products for all but the largest numbers, so the mean weighs each with the largest power of two
  // that keeps the sum below 2^15.
  Name channel_maximum(const Name& x, std::string_view hint);
  Name channel_mean(const Name& x, double largest, std::string_view hint);
  Name channel_sum(const Name& x, double weight, std::string_view hint);
  Name reshape(const Name& x, const mil::Shape& shape, std::string_view hint);
  Name transpose(const Name& x, const std::vector<std::int64_t>& perm, std::string_view hint);
  Name matmul(const Name& x, const Name& y, std::string_view hint);
  Name matmul_transposed_y(const Name& x, const Name& y, std::string_view hint);
  Name matmul_transposed_x(const Name& x, const Name& y, std::string_view hint);
  Name concat(const std::vector<Name>& parts, std::int64_t axis, std::string_view hint);
  // An axis of size 1 to one of size `count`, each the same.
  Name repeat(const Name& x, std::int64_t axis, std::int64_t count, std::string_view hint);
  // Equal parts along an axis.
  std::vector<Name> split(const Name& x, std::int64_t axis, std::int64_t parts,
                          std::string_view hint);
  // Parts of these sizes.
  std::vector<Name> split(const Name& x, std::int64_t axis, const std::vector<std::int64_t>& sizes,
                          std::string_view hint);

  mil::Program finish() &&;

 private:
  Name unique(std::string_view hint);
  std::vector<Name> add_all(std::string_view op,
                            std::vector<std::pair<std::string, mil::Argument>> arguments,
                            std::string_view hint);
  Name matmul(const Name& x, const Name& y, bool transpose_x, bool transpose_y,
              std::string_view hint);
  Name reduce(std::string_view op, const Name& x, std::int64_t axis, std::string_view hint);
  Name sum_of_padded(const std::vector<Name>& parts, std::size_t axis, std::string_view hint);
  void append(mil::Statement statement, bool is_weight);

  const std::string weight_path_;
  const Spellings spellings_;
  mil::Program program_;
  mil::Scope scope_;
  std::list<std::pair<mil::Value, Name>> constants_;  // The scope points to the values.
  std::map<std::string, Name> weights_;               // By tensor and shape.
};

}  // namespace clefkit
