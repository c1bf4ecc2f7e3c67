#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "clefkit/base/executor.h"
#include "clefkit/base/float_matrix.h"
#include "clefkit/engine/head_layers.h"
#include "clefkit/engine/record.h"
#include "clefkit/kernels/linear.h"
#include "clefkit/model/model.h"

namespace clefkit {

// All that the head keeps of a record's final hidden states: they pass by once, block by block, and
// are never stored as a whole.
struct HeadInput {
  std::size_t tokens = 0;         // Read so far.
  FloatMatrix memory;             // M, [tokens of the record, width]
  FloatMatrix question_means;     // Q, [questions, hidden_size]; sums until all tokens are read
  FloatMatrix option_means;       // C, [options, hidden_size]; options of all questions in order
  std::vector<float> last_token;  // [hidden_size]
};

struct Decision {
  FloatMatrix evidence;       // r after the evidence layers, [options, width]
  FloatMatrix fields;         // f after field_norm, [questions, width]
  std::vector<float> logits;  // [options], of all questions in the record's order
  // The same; those of one question sum to 1, as far as double goes: clients check that.
  std::vector<double> probabilities;
};

// The joint schema head (model.md 7): scores every option of every question against the whole
// record at once. float32 arithmetic over the weights as they are stored. The model must outlive
// it.
class DecisionHead {
 public:
  explicit DecisionHead(const Model& model);

  HeadInput begin(const Record& record) const;
  // hidden: [any number, hidden_size], final normed hidden states of the record's next tokens.
  void read(const ComputeContext& context, const Record& record, MatrixView<const float> hidden,
            HeadInput& input) const;
  // Needs every token to have been read. Throws Error(kCorruptData) when a logit is not finite,
  // naming the weight that is to blame where there is one.
  Decision decide(const ComputeContext& context, const Record& record, HeadInput input) const;

 private:
  struct EvidenceLayer {
    HeadLayerNorm query_norm, memory_norm, feedforward_norm;
    HeadAttention attention;
    HeadFeedForward feedforward;
  };
  struct DecoderLayer {
    HeadLayerNorm norm1, norm2, norm3;
    HeadAttention self_attention, memory_attention;
    HeadFeedForward feedforward;
  };

  // Means of lm_head rows over each option's tokens, [options, hidden_size].
  FloatMatrix lexical_means(const ComputeContext& context, const Record& record) const;
  FloatMatrix project_memory(const ComputeContext& context, const HeadAttention& attention,
                             const HeadLayerNorm* norm, const FloatMatrix& memory) const;
  FloatMatrix route_evidence(const ComputeContext& context, const Record& record,
                             const HeadInput& input, const FloatMatrix& lexical) const;
  FloatMatrix decode_fields(const ComputeContext& context, const Record& record,
                            const HeadInput& input, const FloatMatrix& evidence) const;
  std::vector<float> score_options(const ComputeContext& context, const Record& record,
                                   const HeadInput& input, const FloatMatrix& lexical,
                                   const FloatMatrix& evidence, const FloatMatrix& fields) const;

  const Model& model_;
  std::size_t hidden_size_, width_;
  WeightMatrix lm_head_;
  Linear memory_projection_, question_projection_, option_question_projection_, global_projection_,
      option_context_projection_, option_lexical_projection_;
  FloatMatrix type_embedding_;  // [3, width]: noul, choice, score
  HeadLayerNorm hidden_norm_, option_summary_norm_, field_norm_, option_norm_;
  std::vector<EvidenceLayer> evidence_layers_;
  std::vector<DecoderLayer> decoder_layers_;
  HeadFeedForward residual_scorer_;
  float prior_scale_, joint_scale_, residual_gate_;  // After exp with its bound, and sigmoid.
};

}  // namespace clefkit
