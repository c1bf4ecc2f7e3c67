#include "clefkit/cli/answer_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "clefkit/base/error.h"
#include "clefkit/base/utf8.h"

namespace clefkit::cli {
namespace {

constexpr std::size_t kBarWidth = 24;
constexpr std::size_t kWidestName = 28;
constexpr std::size_t kShownOptions = 12;

// Ids come from requests, so control characters must not reach the terminal.
std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c;
  return out;
}

std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size(); ++width) {
    at += std::max<std::size_t>(1, utf8_sequence_length(text.substr(at)));
  }
  return width;
}

// Cut to kWidestName characters, padded to `width`.
std::string fitted(std::string_view text, std::size_t width) {
  std::string name = printable(text);
  if (width_of(name) > kWidestName) {
    std::size_t end = 0;
    for (std::size_t i = 0; i + 1 < kWidestName; ++i) {
      end += std::max<std::size_t>(1, utf8_sequence_length(std::string_view(name).substr(end)));
    }
    name = name.substr(0, end) + "…";
  }
  name.append(width - std::min(width, width_of(name)), ' ');
  return name;
}

std::string bar(double share) {
  static constexpr std::array<const char*, 8> kEighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<std::size_t>(
      std::lround(std::clamp(share, 0.0, 1.0) * static_cast<double>(kBarWidth * 8)));
  std::string out;
  for (std::size_t i = 0; i < eighths / 8; ++i) out += "█";
  out += kEighths[eighths % 8];
  out.append(kBarWidth - std::min(kBarWidth, eighths / 8 + (eighths % 8 != 0 ? 1 : 0)), ' ');
  return out;
}

double number_of(const Json& object, std::string_view key) {
  const Json* const value = object.find(key);
  return value == nullptr ? 0.0 : value->as_double().value_or(0.0);
}

class View {
 public:
  explicit View(bool colour) : colour_(colour) {}

  void add(const std::string& id, const Json& answer) {
    const std::string& type = answer.find("type")->string();
    if (type == "noul") {
      const double yes = number_of(answer, "noul");
      heading(id, yes >= 0.5 ? "yes" : "no", "");
      line("yes", yes, yes >= 0.5);
      line("no", 1 - yes, yes < 0.5);
    } else if (type == "choice") {
      const std::string& choice = answer.find("choice")->string();
      heading(id, choice, fmt::format("confidence {:.3f}", number_of(answer, "confidence")));
      options(*answer.find("probabilities"), nullptr, choice);
    } else {
      heading(id, fmt::format("{:.2f}", number_of(answer, "score")),
              fmt::format("confidence {:.3f}", number_of(answer, "confidence")));
      options(*answer.find("probabilities"), answer.find("legend"), "");
    }
    out_ += '\n';
  }

  std::string take() { return std::move(out_); }

 private:
  void heading(const std::string& id, std::string_view value, const std::string& note) {
    out_ += style("1", printable(id)) + "  " + style("1;36", printable(value));
    if (!note.empty()) out_ += "  " + style("2", note);
    out_ += '\n';
  }

  void options(const Json& probabilities, const Json* legend, std::string_view chosen) {
    struct Row {
      std::string name;
      double share;
      bool is_top;
    };
    std::vector<Row> rows;
    double top = 0;
    for (const auto& [option, share] : probabilities.members()) {
      top = std::max(top, share.as_double().value_or(0.0));
    }
    for (const auto& [option, share] : probabilities.members()) {
      const double value = share.as_double().value_or(0.0);
      std::string name = option;
      if (const Json* text = legend == nullptr ? nullptr : legend->find(option)) {
        name += " " + (text->is_string() ? text->string() : to_string(*text));
      }
      rows.push_back({name, value, chosen.empty() ? value == top : option == chosen});
    }
    std::size_t hidden = 0;
    if (rows.size() > kShownOptions) {
      // Too many to read: the likeliest, in falling order.
      std::ranges::stable_sort(rows, std::greater<>(), &Row::share);
      hidden = rows.size() - kShownOptions;
      rows.resize(kShownOptions);
    }
    name_width_ = 3;
    for (const Row& row : rows) {
      name_width_ = std::max(name_width_, std::min(kWidestName, width_of(printable(row.name))));
    }
    for (const Row& row : rows) line(row.name, row.share, row.is_top);
    if (hidden > 0)
      out_ += style("2", fmt::format("  … and {} less likely options", hidden)) + "\n";
    name_width_ = 3;
  }

  void line(std::string_view name, double share, bool is_top) {
    const std::string text = "  " + fitted(name, name_width_) + "  ";
    out_ += text + style(is_top ? "36" : "2", bar(share)) + fmt::format("  {:.4f}\n", share);
  }

  std::string style(std::string_view code, const std::string& text) const {
    return colour_ ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
  }

  bool colour_;
  std::size_t name_width_ = 3;
  std::string out_;
};

}  // namespace

std::string answer_view(const Json& response, bool colour) {
  View view(colour);
  for (const auto& [id, answer] : response.find("answers")->members()) view.add(id, answer);
  return view.take();
}

}  // namespace clefkit::cli
