#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "clefkit/base/error.h"

namespace clefkit::server {

// Why a call gets no answer, in terms that each dialect spells in its own way.
struct Refusal : std::runtime_error {
  enum class Kind {
    kNotJson,           // The body is no JSON text.
    kInvalid,           // It is, but says something that the protocol does not allow.
    kMediaType,         // The body has a form that is not read here.
    kUnknownModel,      //
    kUnusedAsset,       // It comes with a file that nothing in it refers to.
    kTooManyTokens,     // The record does not fit the model's length.
    kBodyTooLarge,      //
    kUnauthorized,      // No key, or a wrong one.
    kForbidden,         // The Host header names another machine.
    kNotFound,          // No such route.
    kMethodNotAllowed,  //
    kUnsupported,       // Understood, but not available from this model or build.
    kBusy,              // The queue is full: come back in `retry_after_seconds`.
    kStopping,          // The server is going down.
    kDeadline,          // The caller's own deadline passed, or the server's limit.
    kInternal,          // A defect of ours, or a broken model.
  };

  Refusal(Kind the_kind, std::string place, const std::string& text)
      : std::runtime_error(text), kind(the_kind), where(std::move(place)) {}

  std::string message() const { return where.empty() ? what() : where + ": " + what(); }

  Kind kind;
  std::string where;  // `questions.team.criteria`, `images[0]`, or empty.
  std::optional<double> retry_after_seconds{};
  std::string allowed_methods{};  // Of kMethodNotAllowed, as the header Allow has them.
};

// What an Error that a call caused means to its caller.
Refusal refusal_of(const Error& error);

// The usual status of each kind; a dialect may have its own.
int http_status(Refusal::Kind kind);

}  // namespace clefkit::server
