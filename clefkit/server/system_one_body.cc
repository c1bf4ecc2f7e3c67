#include "clefkit/server/system_one_body.h"

#include <algorithm>
#include <utility>

#include "clefkit/server/assets.h"
#include "clefkit/server/image_parts.h"
#include "clefkit/server/wire.h"

namespace clefkit::server {
namespace {

constexpr RequestLimits kLimits{.bytes = kMaxBodyBytes};

ConfidenceRule confidence_rule_of(const Json& value) {
  const auto rule = value.is_string() ? confidence_rule(value.string()) : std::nullopt;
  if (rule) return *rule;
  refuse_invalid("x_confidence", "{}, expected typesafe, top, purity or entropy", found(&value));
}

int round_digits_of(const Json& value) {
  constexpr int kMost = 17;  // A double has no more that mean anything.
  const auto digits = value.as_int64();
  if (digits && *digits >= 0 && *digits <= kMost) return static_cast<int>(*digits);
  refuse_invalid("x_round", "{}, expected an integer from 0 to {}",
                 value.is_number() ? in_quotes(value.number().text) : found(&value), kMost);
}

void read_extensions(Json& body, Call& call) {
  call.overflow_name = "x_truncate";
  if (const Json* rule = find_value(body, "x_confidence")) {
    call.answers.confidence = confidence_rule_of(*rule);
  }
  if (const Json* digits = find_value(body, "x_round")) {
    call.answers.round_digits = round_digits_of(*digits);
  }
  if (const Json* what = find_value(body, "x_truncate")) {
    if (!what->is_string() || what->string() != "state_tail") {
      refuse_invalid("x_truncate", "{}, expected \"state_tail\"", found(what));
    }
    call.overflow = RecordLimits::Overflow::kTruncate;
  }
}

// `files` is another name for `images`.
void rename_files(Json& body) {
  Json* const files = find_value(body, "files");
  if (files == nullptr) return;
  if (!files->is_array()) refuse_invalid("files", "{}, expected an array", found(files));
  if (find_value(body, "images") != nullptr) {
    refuse_invalid("files", "given beside images, expected one of the two");
  }
  std::erase_if(body.members(),
                [](const Json::Member& member) { return member.first == "images"; });
  for (auto& [name, value] : body.members()) {
    if (name == "files") name = "images";
  }
}

}  // namespace

JsonLimits system_one_json_limits() { return json_limits_of(kLimits); }

Call read_system_one_call(Json body, const ModelIdentity& model) {
  if (!body.is_object()) refuse_invalid("body", "{}, expected an object", found(&body));
  Call call;
  read_extensions(body, call);
  rename_files(body);
  std::vector<Asset> assets = take_assets(body);
  call.request = request_from_json(std::move(body), "body", kLimits);
  // The protocol repeats each level in the legend, where null would stand for nothing.
  for (const Question& question : call.request.questions) {
    const auto null = std::ranges::find_if(question.legend, &Json::is_null);
    if (null == question.legend.end()) continue;
    refuse_invalid(
        fmt::format("{}.criteria[{}]", question_place(question.id), null - question.legend.begin()),
        "null, expected a level's description");
  }
  if (call.request.model) require_model(*call.request.model, "model", model);
  for (MediaSource& image : call.request.images) {
    image.value = image_source(std::move(image.value), image.place);
  }
  place_assets(std::move(assets), call.request);
  move_images(call.request.state, call.request.images);
  return call;
}

Json system_one_answer_body(const Answer& answer) {
  const Response& response = answer.response;
  return Json::object({{"model", answer.model.name},
                       {"answers", response.answers},
                       {"usage", usage_to_json(response)},
                       {"x_request_id", answer.request_id},
                       {"x_model_digest", answer.model.digest},
                       {"x_version", answer.model.version},
                       {"x_timing", Json::object({{"queue_seconds", answer.queue_seconds},
                                                  {"encode_seconds", response.encode_seconds},
                                                  {"prefill_seconds", response.prefill_seconds},
                                                  {"head_seconds", response.head_seconds}})}});
}

}  // namespace clefkit::server
