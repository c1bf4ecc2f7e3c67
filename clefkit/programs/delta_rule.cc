#include "clefkit/programs/delta_rule.h"

#include <fmt/format.h>

#include <functional>
#include <vector>

namespace clefkit {
namespace {

using Name = ProgramBuilder::Name;
using mil::Shape;
using mil::Value;
constexpr std::int64_t kSize = kSubChunkTokens;

// A constant [1, 1, rows, columns] of zeros and ones.
Name matrix(ProgramBuilder& builder, std::int64_t rows, std::int64_t columns,
            const std::function<bool(std::int64_t row, std::int64_t column)>& is_one,
            std::string_view hint) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) values.push_back(is_one(i, j) ? 1 : 0);
  }
  return builder.constant(Value({mil::DataType::kFloat16, {1, 1, rows, columns}}, values), hint);
}

class Emitter {
 public:
  Emitter(ProgramBuilder& builder, const DeltaRuleShape& shape, const DeltaRuleInput& input,
          std::string_view hint)
      : builder_(builder),
        shape_(shape),
        hint_(hint),
        chunks_(builder.type(input.q).shape.at(3) / kSize) {}

  DeltaRuleOutput emit(const DeltaRuleInput& input) {
    // [value_heads, chunks, 8, head_dim]
    const Name q = repeated(by_token(input.q, shape_.key_heads, shape_.key_head_dim, "q"), "q");
    const Name k = repeated(by_token(input.k, shape_.key_heads, shape_.key_head_dim, "k"), "k");
    const Name v = by_token(input.v, shape_.value_heads, shape_.value_head_dim, "v");
    const Name g = reshape(input.g, {shape_.value_heads, chunks_, 1, kSize}, "g");
    const Name beta = reshape(input.beta, {shape_.value_heads, chunks_, kSize, 1}, "beta");

    const Name decays = pair_decays(g);
    const Name identity = matrix(
        builder_, kSize, kSize, [](auto i, auto j) { return i == j; }, "identity");
    const Name keys = builder_.matmul_transposed_y(k, k, part("keys"));
    const Name below = matrix(
        builder_, kSize, kSize, [](auto i, auto j) { return j < i; }, "strictly_lower");
    const Name a_decays = mul(decays, below, "a_decays");
    const Name a = mul(mul(keys, beta, "a_beta"), a_decays, "a");
    const Name inverse = inverse_of(a, identity);

    // What each token has decayed since the sub-chunk's start, itself included.
    const Name since_start = decay(
        builder_.matmul(g,
                        matrix(
                            builder_, kSize, kSize, [](auto m, auto i) { return m <= i; }, "up_to"),
                        part("g_start")),
        "since_start");
    const Name until_end = decay(
        builder_.matmul(g,
                        matrix(
                            builder_, kSize, kSize, [](auto m, auto i) { return m > i; }, "after"),
                        part("g_end")),
        "until_end");
    const Name over_all = builder_.unary(
        "exp",
        builder_.matmul(g,
                        matrix(
                            builder_, kSize, 1, [](auto, auto) { return true; }, "all"),
                        part("g_all")),
        part("over_all"));

    const Name u = builder_.matmul(inverse, mul(v, beta, "v_beta"), part("u"));
    const Name w =
        builder_.matmul(inverse, mul(mul(k, beta, "k_beta"), since_start, "k_decayed"), part("w"));
    const Name on_or_below = matrix(
        builder_, kSize, kSize, [](auto i, auto j) { return j <= i; }, "lower");
    const Name qk_decays = mul(decays, on_or_below, "qk_decays");
    const Name queries = mul(builder_.matmul_transposed_y(q, k, part("qk")), qk_decays, "queries");
    return scan(input.state, {.u = u,
                              .w = w,
                              .q = mul(q, since_start, "q_decayed"),
                              .queries = queries,
                              .k = mul(k, until_end, "k_until_end"),
                              .decay = over_all});
  }

 private:
  struct Pieces {
    Name u, w, q, queries, k, decay;
  };

  std::string part(std::string_view name) const { return fmt::format("{}_{}", hint_, name); }
  Name mul(const Name& x, const Name& y, std::string_view name) {
    return builder_.binary("mul", x, y, part(name));
  }
  Name reshape(const Name& x, const Shape& shape, std::string_view name) {
    return builder_.reshape(x, shape, part(name));
  }

  // [1, heads · dim, 1, S] to [heads, chunks, 8, dim].
  Name by_token(const Name& x, std::int64_t heads, std::int64_t dim, std::string_view name) {
    return builder_.transpose(reshape(x, {heads, dim, chunks_, kSize}, name), {0, 2, 3, 1},
                              part(name));
  }

  // Value head h reads key head h / ratio.
  Name repeated(const Name& x, std::string_view name) {
    const std::int64_t ratio = shape_.value_heads / shape_.key_heads;
    if (ratio == 1) return x;
    const Name apart = reshape(x, {shape_.key_heads, 1, chunks_, kSize, shape_.key_head_dim}, name);
    const Name tiled = builder_.repeat(apart, 1, ratio, part(name));
    return reshape(tiled, {shape_.value_heads, chunks_, kSize, shape_.key_head_dim}, name);
  }

  // exp of the sum of g behind token j up to token i, for i >= j: [value_heads, chunks, 8, 8].
  Name pair_decays(const Name& g) {
    const Name pairs = matrix(
        builder_, kSize, kSize * kSize,
        [](std::int64_t m, std::int64_t pair) { return pair % kSize < m && m <= pair / kSize; },
        "pairs");
    const Name sums = reshape(builder_.matmul(g, pairs, part("g_pairs")),
                              {shape_.value_heads, chunks_, kSize, kSize}, "g_pairs");
    return builder_.unary("exp", sums, part("decays"));
  }

  // exp of a row of sums, as a column.
  Name decay(const Name& sums, std::string_view name) {
    const Name column = reshape(sums, {shape_.value_heads, chunks_, kSize, 1}, name);
    return builder_.unary("exp", column, part(name));
  }

  // (I + a)^-1 = (I - a) (I + a²) (I + a⁴), since a⁸ is 0.
  Name inverse_of(const Name& a, const Name& identity) {
    const Name squared = builder_.matmul(a, a, part("a2"));
    const Name fourth = builder_.matmul(squared, squared, part("a4"));
    const Name first = builder_.binary("sub", identity, a, part("one_less_a"));
    const Name second = builder_.binary("add", squared, identity, part("one_and_a2"));
    const Name third = builder_.binary("add", fourth, identity, part("one_and_a4"));
    return builder_.matmul(builder_.matmul(first, second, part("inverse")), third, part("inverse"));
  }

  DeltaRuleOutput scan(const Name& initial, const Pieces& pieces) {
    const auto split = [&](const Name& x, std::string_view name) {
      return chunks_ == 1 ? std::vector{x} : builder_.split(x, 1, chunks_, part(name));
    };
    const auto u = split(pieces.u, "u_at"), w = split(pieces.w, "w_at"),
               q = split(pieces.q, "q_at"), queries = split(pieces.queries, "queries_at"),
               k = split(pieces.k, "k_at"), decays = split(pieces.decay, "decay_at");
    Name state = reshape(
        initial, {shape_.value_heads, 1, shape_.key_head_dim, shape_.value_head_dim}, "state");
    std::vector<Name> outputs;
    for (std::size_t i = 0; i < u.size(); ++i) {
      const Name v =
          builder_.binary("sub", u[i], builder_.matmul(w[i], state, part("known")), part("new"));
      const Name own = builder_.matmul(queries[i], v, part("own"));
      const Name read = builder_.matmul(q[i], state, part("read"));
      outputs.push_back(builder_.binary("add", read, own, part("o")));
      const Name written = builder_.matmul_transposed_x(k[i], v, part("written"));
      const Name kept = mul(state, decays[i], "kept");
      state = builder_.binary("add", kept, written, part("state"));
    }
    const Name o = outputs.size() == 1 ? outputs[0] : builder_.concat(outputs, 1, part("o_all"));
    const Name by_channel = builder_.transpose(o, {0, 3, 1, 2}, part("o_channels"));
    return {reshape(by_channel, {1, shape_.value_heads * shape_.value_head_dim, 1, chunks_ * kSize},
                    "o_out"),
            reshape(state, {1, shape_.value_heads, shape_.key_head_dim, shape_.value_head_dim},
                    "state_out")};
  }

  ProgramBuilder& builder_;
  const DeltaRuleShape& shape_;
  const std::string_view hint_;
  const std::int64_t chunks_;
};

}  // namespace

DeltaRuleOutput emit_delta_rule(ProgramBuilder& builder, const DeltaRuleShape& shape,
                                const DeltaRuleInput& input, std::string_view hint) {
  return Emitter(builder, shape, input, hint).emit(input);
}

}  // namespace clefkit
