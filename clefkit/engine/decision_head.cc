#include "clefkit/engine/decision_head.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <utility>

#include "clefkit/backend/weights.h"
#include "clefkit/base/error.h"
#include "clefkit/kernels/elementwise.h"

namespace clefkit {
namespace {

// Rows of the record that are normed and projected at a time: enough for full speed, and the
// copies stay small beside the memory itself.
constexpr std::size_t kBlockTokens = 512;

Linear projection(const Model& model, const char* name) {
  const HeadConfig& config = model.config.head;
  return linear_layer(model, std::string(name) + ".weight", config.width, config.hidden_size,
                      Precision::kExact);
}

float scalar(const Model& model, const char* name) { return float_vector(model, name, 1)[0]; }

// exp of a learned scale, bounded at 100.
float logit_scale(const Model& model, const char* name) {
  return std::exp(std::min(scalar(model, name), static_cast<float>(std::log(100.0))));
}

float norm(std::span<const float> x) { return std::sqrt(dot(x, x)); }

void add_to(std::span<float> x, std::span<const float> y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

std::size_t option_count(const Record& record) {
  std::size_t count = 0;
  for (const RecordQuestion& question : record.questions) count += question.options.size();
  return count;
}

// Calls body(question index, option, index of the option over all questions).
template <typename Body>
void for_each_option(const Record& record, const Body& body) {
  std::size_t index = 0;
  for (std::size_t q = 0; q < record.questions.size(); ++q) {
    for (const RecordOption& option : record.questions[q].options) body(q, option, index++);
  }
}

// Adds to `sum` the rows of `block` whose tokens (the block's first is number `first`) are in
// `span`, and divides by the span's length once its end has passed.
void accumulate_mean(const TokenSpan& span, std::size_t first, MatrixView<const float> block,
                     std::span<float> sum) {
  const std::size_t begin = std::max(span.begin, first);
  const std::size_t end = std::min(span.end, first + block.rows);
  if (begin >= end) return;
  for (std::size_t token = begin; token < end; ++token) add_to(sum, block.row(token - first));
  if (end < span.end) return;
  for (float& value : sum) value /= static_cast<float>(span.end - span.begin);
}

FloatMatrix zeros(std::size_t rows, std::size_t columns) {
  FloatMatrix matrix(rows, columns);
  std::ranges::fill(matrix.values(), 0.0f);
  return matrix;
}

void softmax_in_double(std::span<double> values) {
  const double largest = std::ranges::max(values);
  double sum = 0;
  for (double& value : values) sum += value = std::exp(value - largest);
  for (double& value : values) value /= sum;
}

}  // namespace

DecisionHead::DecisionHead(const Model& model)
    : model_(model),
      hidden_size_(model.config.head.hidden_size),
      width_(model.config.head.width),
      lm_head_(weight_matrix(model, "lm_head.weight", model.config.text.vocab_size, hidden_size_)),
      memory_projection_(projection(model, "memory_projection")),
      question_projection_(projection(model, "question_projection")),
      option_question_projection_(projection(model, "option_question_projection")),
      global_projection_(projection(model, "global_projection")),
      option_context_projection_(projection(model, "option_context_projection")),
      option_lexical_projection_(projection(model, "option_lexical_projection")),
      type_embedding_(3, width_),
      hidden_norm_(model, "hidden_norm", hidden_size_),
      option_summary_norm_(model, "option_summary_norm", width_),
      field_norm_(model, "field_norm", width_),
      option_norm_(model, "option_norm", width_),
      residual_scorer_(model, "residual_scorer.0", "residual_scorer.3", 4 * width_, width_, 1),
      prior_scale_(logit_scale(model, "prior_logit_scale")),
      joint_scale_(logit_scale(model, "joint_logit_scale")),
      residual_gate_(sigmoid(scalar(model, "residual_gate"))) {
  const HeadConfig& config = model.config.head;
  std::ranges::copy(
      float_values(model, "type_embedding.weight", std::array{std::size_t{3}, width_}),
      type_embedding_.values().begin());
  for (std::size_t i = 0; i < config.routing_layers; ++i) {
    const std::string name = fmt::format("evidence_layers.{}.", i);
    evidence_layers_.push_back(
        {.query_norm = HeadLayerNorm(model, name + "query_norm", width_),
         .memory_norm = HeadLayerNorm(model, name + "memory_norm", width_),
         .feedforward_norm = HeadLayerNorm(model, name + "feedforward_norm", width_),
         .attention = HeadAttention(model, name + "attention", width_, config.heads),
         .feedforward = HeadFeedForward(model, name + "feedforward.0", name + "feedforward.3",
                                        width_, config.feedforward, width_)});
  }
  for (std::size_t i = 0; i < config.layers; ++i) {
    const std::string name = fmt::format("layers.{}.", i);
    decoder_layers_.push_back(
        {.norm1 = HeadLayerNorm(model, name + "norm1", width_),
         .norm2 = HeadLayerNorm(model, name + "norm2", width_),
         .norm3 = HeadLayerNorm(model, name + "norm3", width_),
         .self_attention = HeadAttention(model, name + "self_attn", width_, config.heads),
         .memory_attention = HeadAttention(model, name + "multihead_attn", width_, config.heads),
         .feedforward = HeadFeedForward(model, name + "linear1", name + "linear2", width_,
                                        config.feedforward, width_)});
  }
}

HeadInput DecisionHead::begin(const Record& record) const {
  const auto check_span = [&](const TokenSpan& span, const std::string& where) {
    if (span.begin >= span.end) {
      throw_error(ErrorCode::kInvalidArgument, where, "no tokens, expected at least one");
    }
    assert(span.end <= record.input_ids.size());
  };
  for (const RecordQuestion& question : record.questions) {
    check_span(question.span, "questions." + question.id);
    for (const RecordOption& option : question.options) {
      check_span(option.span, "questions." + question.id + "." + option.id);
    }
  }
  return {.memory = FloatMatrix(record.input_ids.size(), width_),
          .question_means = zeros(record.questions.size(), hidden_size_),
          .option_means = zeros(option_count(record), hidden_size_),
          .last_token = std::vector<float>(hidden_size_)};
}

void DecisionHead::read(const ComputeContext& context, const Record& record,
                        MatrixView<const float> hidden, HeadInput& input) const {
  FloatMatrix normed(std::min(hidden.rows, kBlockTokens), hidden_size_);
  for (std::size_t first = 0; first < hidden.rows; first += kBlockTokens) {
    const std::size_t count = std::min(kBlockTokens, hidden.rows - first);
    const MatrixView<float> x = normed.view().rows_from(0, count);
    hidden_norm_.apply(context, hidden.rows_from(first, count), x);
    memory_projection_.apply(context, x, input.memory.view().rows_from(input.tokens, count));

    for (std::size_t q = 0; q < record.questions.size(); ++q) {
      accumulate_mean(record.questions[q].span, input.tokens, x, input.question_means.row(q));
    }
    for_each_option(record, [&](std::size_t, const RecordOption& option, std::size_t o) {
      accumulate_mean(option.span, input.tokens, x, input.option_means.row(o));
    });
    std::ranges::copy(x.row(count - 1), input.last_token.begin());
    input.tokens += count;
  }
}

Decision DecisionHead::decide(const ComputeContext& context, const Record& record,
                              HeadInput input) const {
  assert(input.tokens == record.input_ids.size());
  const FloatMatrix lexical = lexical_means(context, record);
  Decision decision;
  decision.evidence = route_evidence(context, record, input, lexical);
  decision.fields = decode_fields(context, record, input, decision.evidence);
  decision.logits =
      score_options(context, record, input, lexical, decision.evidence, decision.fields);
  if (has_non_finite(decision.logits)) {
    check_weights_are_finite(model_, [](std::string_view name) {
      return !name.starts_with("model.") || name == "model.language_model.norm.weight";
    });
    throw_error(ErrorCode::kCorruptData, "joint_head",
                "values overflow float32, expected finite logits");
  }

  decision.probabilities.assign(decision.logits.begin(), decision.logits.end());
  std::size_t first = 0;
  for (const RecordQuestion& question : record.questions) {
    softmax_in_double(std::span(decision.probabilities).subspan(first, question.options.size()));
    first += question.options.size();
  }
  return decision;
}

FloatMatrix DecisionHead::lexical_means(const ComputeContext& context, const Record& record) const {
  std::vector<TokenSpan> spans;
  for_each_option(record, [&](std::size_t, const RecordOption& option, std::size_t) {
    spans.push_back(option.span);
  });
  FloatMatrix means = zeros(spans.size(), hidden_size_);
  context.parallel_for(spans.size(), [&](std::size_t o, std::size_t) {
    const std::span<float> mean = means.row(o);
    std::vector<float> row(hidden_size_);
    for (std::size_t token = spans[o].begin; token < spans[o].end; ++token) {
      copy_weight_row(lm_head_, static_cast<std::size_t>(record.input_ids[token]), row);
      add_to(mean, row);
    }
    for (float& value : mean) value /= static_cast<float>(spans[o].end - spans[o].begin);
  });
  return means;
}

// Keys and values of every token for one attention. A block is normed at a time, so that no second
// copy of the memory exists; without `norm` the memory is taken as it is.
FloatMatrix DecisionHead::project_memory(const ComputeContext& context,
                                         const HeadAttention& attention, const HeadLayerNorm* norm,
                                         const FloatMatrix& memory) const {
  FloatMatrix keys_values(memory.rows(), 2 * width_);
  if (norm == nullptr) {
    attention.project_memory(context, memory.view(), keys_values.view());
    return keys_values;
  }
  FloatMatrix normed(std::min(memory.rows(), kBlockTokens), width_);
  for (std::size_t first = 0; first < memory.rows(); first += kBlockTokens) {
    const std::size_t count = std::min(kBlockTokens, memory.rows() - first);
    const MatrixView<float> block = normed.view().rows_from(0, count);
    norm->apply(context, memory.view().rows_from(first, count), block);
    attention.project_memory(context, block, keys_values.view().rows_from(first, count));
  }
  return keys_values;
}

// Steps 3 and 4: what each option finds in the record, r.
FloatMatrix DecisionHead::route_evidence(const ComputeContext& context, const Record& record,
                                         const HeadInput& input, const FloatMatrix& lexical) const {
  FloatMatrix r = apply_linear(context, option_context_projection_, input.option_means);
  add(context, r.view(), apply_linear(context, option_lexical_projection_, lexical).view());
  const FloatMatrix questions =
      apply_linear(context, option_question_projection_, input.question_means);
  for_each_option(record, [&](std::size_t q, const RecordOption&, std::size_t o) {
    add_to(r.row(o), questions.row(q));
  });

  for (const EvidenceLayer& layer : evidence_layers_) {
    const FloatMatrix keys_values =
        project_memory(context, layer.attention, &layer.memory_norm, input.memory);
    add(context, r.view(),
        layer.attention.attend(context, layer.query_norm(context, r), keys_values).view());
    add(context, r.view(), layer.feedforward(context, layer.feedforward_norm(context, r)).view());
  }
  return r;
}

// Steps 5 to 7: one field per question, f.
FloatMatrix DecisionHead::decode_fields(const ComputeContext& context, const Record& record,
                                        const HeadInput& input, const FloatMatrix& evidence) const {
  FloatMatrix f = apply_linear(context, question_projection_, input.question_means);
  FloatMatrix summary = zeros(record.questions.size(), width_);
  const float scale = 1.0f / std::sqrt(static_cast<float>(width_));
  std::size_t first = 0;
  for (std::size_t q = 0; q < record.questions.size(); ++q) {
    std::vector<float> weights(record.questions[q].options.size());
    for (std::size_t o = 0; o < weights.size(); ++o) {
      weights[o] = dot(evidence.row(first + o), f.row(q)) * scale;
    }
    softmax(weights);
    for (std::size_t o = 0; o < weights.size(); ++o) {
      const std::span<const float> r = evidence.row(first + o);
      for (std::size_t i = 0; i < width_; ++i) summary.row(q)[i] += weights[o] * r[i];
    }
    first += weights.size();
  }
  add(context, f.view(), option_summary_norm_(context, summary).view());

  FloatMatrix last(1, hidden_size_);
  std::ranges::copy(input.last_token, last.values().begin());
  const FloatMatrix global = apply_linear(context, global_projection_, last);
  for (std::size_t q = 0; q < record.questions.size(); ++q) {
    add_to(f.row(q), global.row(0));
    add_to(f.row(q), type_embedding_.row(static_cast<std::size_t>(record.questions[q].type)));
  }

  for (const DecoderLayer& layer : decoder_layers_) {
    const FloatMatrix x = layer.norm1(context, f);
    const FloatMatrix fields = project_memory(context, layer.self_attention, nullptr, x);
    add(context, f.view(), layer.self_attention.attend(context, x, fields).view());
    // Unlike the evidence layers, these read the memory without a norm.
    const FloatMatrix keys_values =
        project_memory(context, layer.memory_attention, nullptr, input.memory);
    add(context, f.view(),
        layer.memory_attention.attend(context, layer.norm2(context, f), keys_values).view());
    add(context, f.view(), layer.feedforward(context, layer.norm3(context, f)).view());
  }
  return field_norm_(context, f);
}

// Step 8.
std::vector<float> DecisionHead::score_options(const ComputeContext& context, const Record& record,
                                               const HeadInput& input, const FloatMatrix& lexical,
                                               const FloatMatrix& evidence,
                                               const FloatMatrix& fields) const {
  constexpr float kMinLexicalNorm = 1e-12f, kMinCosineNorm = 1e-8f;
  const FloatMatrix u = option_norm_(context, evidence);
  FloatMatrix asked = zeros(record.questions.size(), hidden_size_);
  for (std::size_t q = 0; q < record.questions.size(); ++q) {
    add_to(asked.row(q), input.question_means.row(q));
    add_to(asked.row(q), input.last_token);
  }

  FloatMatrix features(evidence.rows(), 4 * width_);  // [f ; u ; f ⊙ u ; |f − u|]
  std::vector<float> prior(evidence.rows()), cosine(evidence.rows());
  for_each_option(record, [&](std::size_t q, const RecordOption&, std::size_t o) {
    const std::span<const float> field = fields.row(q), option = u.row(o);
    const std::span<float> feature = features.row(o);
    for (std::size_t i = 0; i < width_; ++i) {
      feature[i] = field[i];
      feature[width_ + i] = option[i];
      feature[2 * width_ + i] = field[i] * option[i];
      feature[3 * width_ + i] = std::abs(field[i] - option[i]);
    }
    cosine[o] = dot(field, option) /
                (std::max(norm(field), kMinCosineNorm) * std::max(norm(option), kMinCosineNorm));
    prior[o] =
        dot(lexical.row(o), asked.row(q)) / (std::max(norm(lexical.row(o)), kMinLexicalNorm) *
                                             std::max(norm(asked.row(q)), kMinLexicalNorm));
  });
  const FloatMatrix residual = residual_scorer_(context, features);

  std::vector<float> logits(evidence.rows());
  for (std::size_t o = 0; o < logits.size(); ++o) {
    logits[o] =
        prior_scale_ * prior[o] + residual_gate_ * (joint_scale_ * cosine[o] + residual.row(o)[0]);
  }
  return logits;
}

}  // namespace clefkit
